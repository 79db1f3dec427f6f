"""Escape texts of foreign documents for terminals and XML."""

from __future__ import annotations

import json
from typing import Any, Final

import orjson

from specmux_converters.lazy.patterns import pattern

_OBEYED: Final = pattern(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and line feed, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # directions (Unicode UAX 9)
    "\u2028\u2029\ud800-\udfff]"
)


def printable(text: str) -> str:
    """Escape what a terminal interprets or XML forbids: such characters become ``\\u001b``."""
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() else f"\\u{ord(mark):04x}" for mark in text)


def printable_lines(text: str) -> str:
    """Text of several lines for a terminal: escapes only what a terminal interprets, or what changes the
    visual order of the text. White space and letters of all scripts remain, as in kubectl."""
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text) if _OBEYED.search(text) else text


def json_text(value: Any) -> str:
    """Indented JSON; a lone surrogate, which UTF-8 cannot encode, is escaped."""
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n"
    except TypeError:
        return json.dumps(value, indent=2) + "\n"
