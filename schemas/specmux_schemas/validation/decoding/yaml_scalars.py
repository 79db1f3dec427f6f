"""What a YAML scalar is to go-yaml v2, which Kubernetes reads manifests with (its resolve.go): YAML 1.1."""

from __future__ import annotations

import re
from base64 import b64decode
from binascii import Error as Base64Error
from functools import lru_cache
from typing import Any, Final

from specmux_schemas.validation.errors import Undecodable
from specmux_schemas.validation.schema.scalars import base64_fault

_TAG: Final = "tag:yaml.org,2002:"
_STR: Final = _TAG + "str"
_BINARY: Final = _TAG + "binary"
_FLOAT: Final = _TAG + "float"
_INT: Final = _TAG + "int"
_TIMESTAMP: Final = _TAG + "timestamp"
_RESOLVABLE: Final = frozenset((_STR, _TAG + "bool", _INT, _FLOAT, _TAG + "null", _TIMESTAMP))

MOST_KEPT: Final = 8192
"""Short texts whose values are remembered: manifests say the same again and again."""
_SHORT_TEXT: Final = 64

_INF: Final = float("inf")
_WORDS: Final[dict[str, tuple[str, Any]]] = {
    **dict.fromkeys(
        ["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"], (_TAG + "bool", True)
    ),
    **dict.fromkeys(
        ["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"], (_TAG + "bool", False)
    ),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), (_TAG + "null", None)),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), (_FLOAT, float("nan"))),
    **dict.fromkeys(("+.inf", "+.Inf", "+.INF", ".inf", ".Inf", ".INF"), (_FLOAT, _INF)),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), (_FLOAT, -_INF)),
    "<<": (_TAG + "merge", "<<"),
}
_STARTS: Final = frozenset("+-0123456789.")
"""Of numbers and timestamps; every word is in the table."""
_TIMES: Final = re.compile(
    r"[0-9]{4}-([0-9]{1,2})-([0-9]{1,2})"
    r"(?:[Tt]([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,][0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})"
    r"| +([0-9]{1,2}):([0-9]{1,2}):([0-9]{1,2})(?:[.,][0-9]+)?)?"
)
_LIMITS: Final = (12, 31, 23, 59, 59, 23, 59, 59)
_INTEGER: Final = re.compile(
    r"[-+]?(?:0[xX](?P<hex>[0-9a-fA-F]+)|0[bB](?P<bin>[01]+)|0[oO]?(?P<oct>[0-7]+)|(?P<dec>0|[1-9][0-9]*))"
)
_BASES: Final = {"hex": 16, "bin": 2, "oct": 8, "dec": 10}
_FLOATS: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_DIGITS_OF_64_BITS: Final = 70
_DECIMAL: Final = re.compile(r"0|[1-9][0-9]{0,17}")


def plain_value(text: str) -> Any:
    """Of a scalar without a tag that is not quoted."""
    return _short_value(text) if len(text) <= _SHORT_TEXT else _plain(text)[1]


@lru_cache(maxsize=MOST_KEPT)
def _short_value(text: str) -> Any:
    return _plain(text)[1]


def resolve(text: str, tag: str) -> Any:
    """Of a scalar with a tag. Raises Undecodable where they contradict each other."""
    if tag == _BINARY:
        return _binary(text)
    if tag == _STR or tag not in _RESOLVABLE:
        return text
    found, value = _plain(text, is_timestamp=tag == _TIMESTAMP)
    if found == _INT and tag == _FLOAT:
        return float(value)
    if found != tag:
        raise Undecodable(f"yaml: cannot decode {_short(found)} `{text}` as a {_short(tag)}")
    return value


def _short(tag: str) -> str:
    return "!!" + tag.removeprefix(_TAG)


def _plain(text: str, *, is_timestamp: bool = True) -> tuple[str, Any]:
    """The tag of a text without one, and its value. Timestamps stay text, as they do for Kubernetes."""
    word = _WORDS.get(text)
    if word is not None:
        return word
    if text[0] not in _STARTS:
        return _STR, text
    if _DECIMAL.fullmatch(text):
        return _INT, int(text)
    if text[0] == ".":
        number = _go_float(text)
        return (_STR, text) if number is None else (_FLOAT, number)
    if is_timestamp and _is_time(text):
        return _TIMESTAMP, text
    return _number(text)


def _number(text: str) -> tuple[str, Any]:
    plain = text.replace("_", "")
    match = _INTEGER.fullmatch(plain)
    if match is not None and match.lastgroup and len(plain) <= _DIGITS_OF_64_BITS:
        number = int(match[match.lastgroup], _BASES[match.lastgroup])
        number = -number if plain[0] == "-" else number
        if -(2**63) <= number < (2**64 if plain[0] not in "+-" else 2**63):
            return _INT, number
    if _FLOATS.fullmatch(plain):
        value = float(plain)
        if abs(value) != _INF:
            return _FLOAT, value
    return _STR, text


def _is_time(text: str) -> bool:
    match = _TIMES.fullmatch(text)
    return match is not None and all(
        part is None or int(part) <= most for part, most in zip(match.groups(), _LIMITS, strict=True)
    )


_GO_FLOAT: Final = re.compile(r"\.[0-9]+(?:[eE][-+]?[0-9]+)?")


def _go_float(text: str) -> float | None:
    """strconv.ParseFloat for what begins with a point; underscores are for prefixed numbers only there."""
    if not _GO_FLOAT.fullmatch(text):
        return None
    value = float(text)
    return None if abs(value) == _INF else value


def _binary(text: str) -> str:
    if base64_fault(text) is not None:
        raise Undecodable("yaml: !!binary value contains invalid base64 data")
    try:
        return b64decode(text).decode("utf-8", "replace")
    except Base64Error as error:
        raise Undecodable("yaml: !!binary value contains invalid base64 data") from error
