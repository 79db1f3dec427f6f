"""Durations in units that Go does not have: days, weeks, and words for all of them (kube-openapi, strfmt)."""

from __future__ import annotations

import re
from typing import Final

_PART: Final = re.compile(r"([0-9]+)\s*([A-Za-z\u00b5]+)")
_SECOND: Final = 1_000_000_000
_UNITS: Final[tuple[tuple[frozenset[str], str, int], ...]] = (
    (frozenset(("ns",)), "nano", 1),
    (frozenset(("us", "\u00b5s")), "micro", 1_000),
    (frozenset(("ms",)), "milli", 1_000_000),
    (frozenset(("s",)), "sec", _SECOND),
    (frozenset(("m",)), "min", 60 * _SECOND),
    (frozenset(("h", "hr")), "hour", 3_600 * _SECOND),
    (frozenset(("d",)), "day", 86_400 * _SECOND),
    (frozenset(("w", "wk")), "week", 7 * 86_400 * _SECOND),
)


def read_long_duration(text: str) -> int | None:
    """In nanoseconds; None where no part is a duration. What is no part is skipped."""
    total: int | None = None
    for count, unit in _PART.findall(text):
        size = _size(unit.lower())
        if size is not None:
            total = (total or 0) + int(count) * size
    return total


def _size(unit: str) -> int | None:
    return next((size for short, long, size in _UNITS if unit in short or unit.startswith(long)), None)
