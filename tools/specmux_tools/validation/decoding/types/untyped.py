"""Decode values without a Go type: only duplicate keys and numbers beyond a double are errors."""

from __future__ import annotations

from typing import Any

from specmux_converters.go.text import Number
from specmux_tools.validation.decoding.decoding_state import Decoding
from specmux_tools.validation.decoding.json_reader import Repeats

_INFINITE = float("inf")


def decode_untyped(value: Any, state: Decoding) -> None:
    """Into ``interface{}``; an infinite number is recorded as a mismatch."""
    match value:
        case Repeats():
            seen: set[str] = set()
            for key, item in value.pairs:
                if key in seen:
                    state.duplicate(key)
                seen.add(key)
                _inside(key, item, state)
        case dict():
            for key, item in value.items():
                _inside(key, item, state)
        case list():
            for index, item in enumerate(value):
                _inside(index, item, state)
        case Number() if abs(value) == _INFINITE:
            state.mismatched(f"number {value.text}", "float64")


def _inside(part: str | int, item: Any, state: Decoding) -> None:
    if isinstance(item, dict | list | Number):
        state.path.append(part)
        decode_untyped(item, state)
        state.path.pop()
