"""Texts of foreign documents, made fit for terminals and XML."""

from __future__ import annotations

import json
import re
from typing import Any, Final

import orjson

_OBEYED: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # C0 without tab and line feed, DEL, C1
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # directions (Unicode UAX 9)
    "\u2028\u2029\ud800-\udfff]"
)


def printable(text: str) -> str:
    """Without what a terminal obeys or XML forbids: such characters become ``\\u001b``."""
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() else f"\\u{ord(mark):04x}" for mark in text)


def printable_lines(text: str) -> str:
    """As ``printable``, of a text of several lines: only what a terminal obeys, or what changes the order in
    which it shows a text, becomes an escape. Spaces and letters of all kinds stay, as kubectl prints them."""
    return _OBEYED.sub(lambda found: f"\\u{ord(found[0]):04x}", text) if _OBEYED.search(text) else text


def json_text(value: Any) -> str:
    """Indented JSON; a lone surrogate, which UTF-8 cannot hold, is written as its escape."""
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n"
    except TypeError:
        return json.dumps(value, indent=2) + "\n"
