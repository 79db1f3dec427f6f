"""Existing names similar to a misspelled one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

MOST: Final = 3
_COMPARED: Final = 5000
"""Most names compared, to bound the cost of a request."""
_LEAST: Final = 0.5


def similar_to(name: str, names: Iterable[str]) -> tuple[str, ...]:
    """At most three of the names, closest first, ignoring case."""
    from difflib import SequenceMatcher  # needed only for a mistake

    matcher = SequenceMatcher(b=name.casefold()[:100], autojunk=False)
    rated = []
    for _, other in zip(range(_COMPARED), dict.fromkeys(names), strict=False):
        matcher.set_seq1(other.casefold()[:100])
        if matcher.real_quick_ratio() >= _LEAST and matcher.quick_ratio() >= _LEAST:
            rated.append((-matcher.ratio(), other))
    return tuple(other for rating, other in sorted(rated)[:MOST] if -rating >= _LEAST)
