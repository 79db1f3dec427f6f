"""Read parsed JSON whose types nobody has checked: a value of another type reads as an empty one. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def within(value: Any, *names: str) -> dict[str, Any]:
    """The object at a path of keys."""
    for name in names:
        value = mapping(value).get(name)
    return mapping(value)


def array(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def objects(value: Any) -> list[dict[str, Any]]:
    """The objects of an array."""
    return [item for item in array(value) if isinstance(item, dict)]


def text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def texts(value: Any) -> tuple[str, ...]:
    """The strings of an array."""
    return tuple(item for item in array(value) if isinstance(item, str))


def members(value: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """The members of an object that are objects."""
    return ((name, item) for name, item in mapping(value).items() if isinstance(item, dict))
