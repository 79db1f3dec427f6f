"""Values of literals: numbers, texts and bytes with their escapes (cel-go, parser/unescape.go)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from specmux_tools.validation.rules.cel.values.values import INT_MAX, UINT_MAX, UInt

_ESCAPE: Final = re.compile(
    rb"\\(?:([abfnrtv\"'\\?`])|([0-3][0-7]{2})|[xX]([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8}))"
)
_TEXT_ESCAPE: Final = re.compile(_ESCAPE.pattern.decode())
_MOST_DIGITS: Final = 1_000
"""Of an integer, leading zeroes included."""
_SHORT: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class BadLiteral(Exception):
    """Says what, as an apiserver does."""


def number(kind: str, text: str, *, is_negative: bool = False) -> Any:
    """Raises BadLiteral."""
    if kind == "float":
        value = float(text)
        if value == float("inf"):
            raise BadLiteral("invalid double literal")
        return -value if is_negative else value
    digits = text.rstrip("uU")
    if len(digits) > _MOST_DIGITS:
        raise BadLiteral(f"invalid {kind} literal")
    whole = int(digits, 16 if digits.startswith("0x") else 10)
    if kind == "uint":
        if whole > UINT_MAX:
            raise BadLiteral("invalid uint literal")
        return UInt(whole)
    if whole > INT_MAX + is_negative:
        raise BadLiteral("invalid int literal")
    return -whole if is_negative else whole


def text_value(text: str) -> str:
    """Raises BadLiteral."""
    inner, is_raw = _inside(text)
    if is_raw or "\\" not in inner:
        return inner
    return _TEXT_ESCAPE.sub(_character, inner)


def bytes_value(text: str) -> bytes:
    """Of a literal that begins with b. Raises BadLiteral."""
    inner, is_raw = _inside(text[1:])
    data = inner.encode()
    return data if is_raw or b"\\" not in data else _ESCAPE.sub(_byte, data)


def _inside(text: str) -> tuple[str, bool]:
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    is_raw = text[0] in "rR"
    text = text[1:] if is_raw else text
    width = 3 if text[:3] in ('"""', "'''") and len(text) >= 6 else 1
    return text[width:-width], is_raw


def _character(found: re.Match[str]) -> str:
    short, octal, *wide = found.groups()
    if short is not None:
        return _SHORT.get(short, short)
    code = int(octal, 8) if octal is not None else int(next(each for each in wide if each), 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise BadLiteral("invalid unicode code point")
    return chr(code)


def _byte(found: re.Match[bytes]) -> bytes:
    short, octal, pair, *wide = found.groups()
    if any(wide):
        raise BadLiteral("unable to unescape string")
    if short is not None:
        return _SHORT.get(short.decode(), short.decode()).encode()
    return bytes([int(octal, 8) if octal is not None else int(pair, 16)])


READERS: Final[dict[str, Callable[[str], Any]]] = {"string": text_value, "bytes": bytes_value}
