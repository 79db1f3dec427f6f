"""Ranges of sizes and costs that stop at 64 bits (cel-go, checker/cost.go)."""

from __future__ import annotations

from math import ceil
from typing import Final

from specmux_converters.lazy.dataclasses import dataclass

MOST: Final = 2**64 - 1


@dataclass(frozen=True, slots=True)
class Range:
    least: int
    most: int

    def plus(self, other: Range) -> Range:
        return Range(min(self.least + other.least, MOST), min(self.most + other.most, MOST))

    def times(self, other: Range) -> Range:
        return Range(min(self.least * other.least, MOST), min(self.most * other.most, MOST))

    def by(self, factor: float) -> Range:
        return Range(_scale(self.least, factor), _scale(self.most, factor))

    def union(self, other: Range) -> Range:
        return Range(min(self.least, other.least), max(self.most, other.most))


def fixed(value: int) -> Range:
    return Range(value, value)


def _scale(value: int, factor: float) -> int:
    scaled = float(value) * factor
    return MOST if scaled >= 2.0**64 else ceil(scaled)


NOTHING: Final = Range(0, 0)
ONE: Final = Range(1, 1)
UNKNOWN: Final = Range(0, MOST)
EMPTY_UNION: Final = Range(MOST, 0)
"""To which others are joined."""
