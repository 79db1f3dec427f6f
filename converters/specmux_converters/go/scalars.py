"""How go-yaml v3 reads plain scalars: what a text without quotes is.

Any{yaml} holds what Go's emitter wrote, so both our writer (which texts need quotes?) and our reader (what is
this text?) need go-yaml's own rules (its resolve.go); PyYAML's are those of YAML 1.1.
"""

from __future__ import annotations

import re
from typing import Final

INT64_MAX: Final = 2**63 - 1
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
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_POINT_FLOAT: Final = re.compile(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?", re.ASCII)
_OCTAL: Final = re.compile(r"[-+]?0[0-7]+", re.ASCII)
_INTEGER: Final = re.compile(
    r"[-+]?(?:0|0[xX][0-9a-fA-F]+|0[oO][0-7]+|0[bB][01]+|[1-9][0-9]{0,19})", re.ASCII
)
_SIGN_BEHIND_BASE: Final = re.compile(r"0(?:b[-+][01]+|o[-+][0-7]+)", re.ASCII)
_TIMESTAMP: Final = re.compile(
    r"(?P<year>[0-9]{4})-(?P<month>[0-9]{1,2})-(?P<day>[0-9]{1,2})"
    r"(?:(?P<t>[Tt]| +)(?P<hour>[0-9]{1,2}):(?P<minute>[0-9]{1,2}):(?P<second>[0-9]{1,2})(?:[.,][0-9]+)?"
    r"(?P<zone>Z|[-+](?:[01][0-9]|2[0-4]):(?:[0-5][0-9]|60))?)?",
    re.ASCII,
)
_DAYS: Final = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)


def is_plain_string(text: str) -> bool:
    """Would go-yaml read ``text``, without quotes, as a string?"""
    if text in _WORDS:
        return False
    return text[0] not in _FIRST or (_number(text) is None and not _is_timestamp(text))


def read_plain(text: str) -> object:
    """The value of an unquoted scalar: bool, None, int, float, else the text itself (timestamps too: JSON
    has none, and Go's decoder into a JSON tree keeps their text)."""
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
        # resolve.go cuts "0b" and "0o" off what Go itself does not read, and lets the rest have a sign.
        integer = int(plain[2:], 2 if plain[1] == "b" else 8)
    else:
        return _finite(plain) if _FLOAT.fullmatch(plain) else None
    # Beyond int64 it is read as an unsigned one, which may not have a sign.
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
