"""Texts of foreign documents, made fit for terminals and XML."""

from __future__ import annotations

import json
from typing import Any

import orjson


def printable(text: str) -> str:
    """Without what a terminal obeys or XML forbids: such characters become ``\\u001b``."""
    if text.isprintable():
        return text
    return "".join(mark if mark.isprintable() else f"\\u{ord(mark):04x}" for mark in text)


def json_text(value: Any) -> str:
    """Indented JSON; a lone surrogate, which UTF-8 cannot hold, is written as its escape."""
    try:
        return orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n"
    except TypeError:
        return json.dumps(value, indent=2) + "\n"
