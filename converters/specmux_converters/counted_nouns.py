"""Amounts for people: ``1 object``, ``2 objects``, ``3 NetworkPolicies``, ``1.4 MiB``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")


def counted(count: int, noun: str) -> str:
    return f"{count} {plural(noun, count)}"


def plural(noun: str, count: int) -> str:
    """The form of the noun, its last word, beside the number. ``Endpoints`` is its own plural."""
    if count == 1 or noun.endswith("points"):
        return noun
    if noun.endswith("y"):
        return f"{noun[:-1]}ies"
    return f"{noun}es" if noun.endswith(("s", "x")) else f"{noun}s"


def size(number: int) -> str:
    """Bytes in the largest unit of which there is one: ``1.4 MiB``."""
    amount, unit = float(number), 0
    while amount >= 1024 and unit < len(_UNITS) - 1:
        amount, unit = amount / 1024, unit + 1
    return f"{number} B" if unit == 0 else f"{amount:.1f} {_UNITS[unit]}"


def first_of(texts: Sequence[str], most: int, what: str = "") -> list[str]:
    """The first ``most``, and how many more of ``what`` there are."""
    more = len(texts) - most
    return [*texts[:most], f"and {more} more {what}".rstrip()] if more > 0 else [*texts]


def list_first(texts: Sequence[str], most: int, *, separator: str = ", ") -> str:
    """``apps/v1, batch/v1, and 3 more``."""
    return separator.join(first_of(texts, most))
