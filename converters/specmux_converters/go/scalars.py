"""Reads plain (unquoted) scalars as go-yaml v3 does.

Any{yaml} contains the output of Go's emitter, so the writer (which texts need quotes?) and the reader (what
does this text mean?) both need go-yaml's rules (its resolve.go); PyYAML implements YAML 1.1.
"""

from __future__ import annotations

import math
import re
import struct
from base64 import b64decode
from typing import Any, Final

from specmux_converters.go.text import INT64_MAX, general_text
from specmux_converters.lazy.patterns import pattern

UINT64_MAX: Final = 2**64 - 1

_WORDS: Final[dict[str, object]] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
}

_FIRST: Final = frozenset("+-.0123456789")
_FLOAT: Final = pattern(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_POINT_FLOAT: Final = pattern(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?", re.ASCII)
_OCTAL: Final = pattern(r"[-+]?0[0-7]+", re.ASCII)
_INTEGER: Final = pattern(r"[-+]?(?:0|0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+|[1-9][0-9]{0,19})", re.ASCII)
_SIGN_BEHIND_BASE: Final = pattern(r"0(?:b[-+][01]+|o[-+][0-7]+)", re.ASCII)
_TIMESTAMP: Final = pattern(
    r"(?P<year>[0-9]{4})-(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})"
    r"(?:(?P<t>[Tt]| +)(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{1,2}):(?P<second>[0-9]{1,2})(?:[.,][0-9]+)?"
    r"(?P<zone>Z|[-+](?:[01][0-9]|2[0-4]):(?:[0-5][0-9]|60))?)?",
    re.ASCII,
)
_DAYS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def is_plain_string(text: str) -> bool:
    """Whether go-yaml reads ``text`` without quotes as a string."""
    if text in _WORDS:
        return False
    return text[0] not in _FIRST or (_number(text) is None and not _is_timestamp(text))


def read_plain(text: str) -> object:
    """The value of a plain scalar: bool, None, int, float, otherwise the text. Timestamps remain texts: JSON
    has none, and so they do in Go's decoder to a JSON tree."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in _FIRST or _is_timestamp(text):
        return text
    number = _number(text)
    return text if number is None else number


def _number(text: str) -> int | float | None:
    if text[0] == ".":
        return _finite(text) if _POINT_FLOAT.fullmatch(text) else None
    plain = text.replace("_", "")
    if _OCTAL.fullmatch(plain):
        integer = int(plain, 8)
    elif _INTEGER.fullmatch(plain):
        integer = int(plain, 0)
    elif _SIGN_BEHIND_BASE.fullmatch(plain):
        # resolve.go strips "0b" and "0o" from what Go itself cannot parse, and lets the rest have a sign.
        integer = int(plain[2:], 2 if plain[1] == "b" else 8)
    else:
        return _finite(plain) if _FLOAT.fullmatch(plain) else None
    # Beyond int64 it is parsed as unsigned, which allows no sign.
    if -INT64_MAX - 1 <= integer <= (INT64_MAX if "+" in plain else UINT64_MAX):
        return integer
    return _finite(plain) if _FLOAT.fullmatch(plain) else None


def _finite(text: str) -> float | None:
    value = float(text)
    return None if value - value != 0 else value


def _is_timestamp(text: str) -> bool:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        return False
    year, month, day = int(match["year"]), int(match["month"]), int(match["day"])
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if not (1 <= month <= 12 and 1 <= day <= _DAYS[month - 1] + leap):
        return False
    if match["t"] is None:
        return True
    if match["t"].startswith(" ") == (match["zone"] is not None):
        return False
    return int(match["hour"]) < 24 and int(match["minute"]) < 60 and int(match["second"]) < 60


_V2_WORDS: Final[dict[str, object]] = {
    **_WORDS,
    **dict.fromkeys(("y", "Y", "yes", "Yes", "YES", "on", "On", "ON"), True),
    **dict.fromkeys(("n", "N", "no", "No", "NO", "off", "Off", "OFF"), False),
}
_ONLY_IN_V3: Final = re.compile(r"0_*o_*[-+]")
"""A number in go-yaml v3 alone; all other rules are v2's."""
_MOST_DIGITS: Final = 300
"""Characters of a number; Python's int() takes quadratic time."""
_TAG: Final = "tag:yaml.org,2002:"
_TAG_OF: Final[dict[type, str]] = {bool: "bool", int: "int", float: "float", type(None): "null"}
_RESOLVED_TAGS: Final = frozenset({_TAG + name for name in (*_TAG_OF.values(), "timestamp")})
_LINE_BREAKS: Final = str.maketrans("", "", "\r\n")


def resolve(text: str) -> Any:
    """The value of a plain scalar in go-yaml v2 (YAML 1.1), with which Kubernetes reads manifests."""
    if text in _V2_WORDS:
        return _V2_WORDS[text]
    return text if len(text) > _MOST_DIGITS or _ONLY_IN_V3.match(text) else read_plain(text)


def resolve_tagged(text: str, tag: str) -> Any:
    """The value of a tagged scalar. Raises ValueError in go-yaml's words if text and tag contradict."""
    if tag == _TAG + "binary":
        return _binary(text)
    if tag not in _RESOLVED_TAGS:
        return text
    value = resolve(text)
    if type(value) is int and tag == _TAG + "float":
        return float(value)
    name = "timestamp" if type(value) is str and _is_timestamp(text) else _TAG_OF.get(type(value), "str")
    if _TAG + name != tag:
        raise ValueError(f"yaml: cannot decode !!{name} `{text}` as a !!{tag.removeprefix(_TAG)}")
    return value


def key_text(key: Any) -> str:
    """The JSON name of a key that is not a text (sigs.k8s.io/yaml, convertToJSONableObject); "" for null."""
    match key:
        case None:
            return ""
        case bool():
            return "true" if key else "false"
        case float():
            text = general_text(_single(key))
            return {"+Inf": ".inf", "-Inf": "-.inf", "NaN": ".nan"}.get(text, text)
        case _:
            return str(key)


def _single(value: float) -> float:
    """The number with the fewest digits that identify it in single precision."""
    try:
        (wanted,) = struct.unpack("<f", struct.pack("<f", value))
    except OverflowError:
        return math.copysign(math.inf, value)
    if not math.isfinite(wanted):
        return value
    shortest = (float(f"{wanted:.{digits}e}") for digits in range(9))
    return next(each for each in shortest if struct.unpack("<f", struct.pack("<f", each))[0] == wanted)


def _binary(text: str) -> str:
    try:
        return b64decode(text.translate(_LINE_BREAKS), validate=True).decode("utf-8", "replace")
    except ValueError as error:
        raise ValueError("yaml: !!binary value contains invalid base64 data") from error
