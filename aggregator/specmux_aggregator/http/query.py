"""Parameters of a request's query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final
from urllib.parse import parse_qsl

_PARAMETERS_MAX: Final = 20


class BadParameters(ValueError):
    """A fault of a query."""


def parameters(query: str) -> Mapping[str, str]:
    """By name, the last of one name. Raises BadParameters."""
    try:
        found = parse_qsl(query, keep_blank_values=True, max_num_fields=_PARAMETERS_MAX, errors="strict")
        return dict(found)
    except (ValueError, UnicodeDecodeError) as error:
        raise BadParameters("the query cannot be read") from error


def number(given: Mapping[str, str], name: str, default: int, *, least: int, most: int) -> int:
    """Raises BadParameters."""
    text = given.get(name, str(default))
    if not (text.isascii() and text.isdecimal() and len(text) < 9 and least <= int(text) <= most):
        raise BadParameters(f"{name} is a number from {least} to {most}")
    return int(text)


def flag(given: Mapping[str, str], name: str) -> bool:
    """Raises BadParameters."""
    text = given.get(name, "false").lower()
    if text not in ("", "1", "true", "0", "false"):
        raise BadParameters(f"{name} is true or false")
    return text in ("", "1", "true")
