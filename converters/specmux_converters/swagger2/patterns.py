"""Whether a text has the form that a ``pattern`` asks for, where that can be told in bounded time.

A pattern is a regular expression that the document chose, and Python's matcher tries every way to read it.
So the ways are counted first; where there may be too many, or where Python does not know the syntax, nothing
is said.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

WAYS_MAX: Final = 100_000
"""Ways to match one pattern, tried in a hundredth of a second."""

PATTERN_MAX: Final = 1000
"""Characters of a pattern that is looked at."""

_TOKEN: Final = re.compile(
    r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\((?:\?(?:P?<\w+>|P=\w+|[^)])?)?|[)|]|[*+?]|\{[0-9]*(?:,[0-9]*)?\}|.",
    re.DOTALL,
)
_COUNTS: Final = re.compile(r"\{([0-9]*)(,?)([0-9]*)\}")


def has_pattern(text: str, pattern: str) -> bool | None:
    """None where it was not tried."""
    if len(pattern) > PATTERN_MAX or _ways(pattern, len(text)) > WAYS_MAX:
        return None
    try:
        return re.search(pattern, text) is not None
    except (re.error, OverflowError, RecursionError):
        return None


@dataclass(slots=True)
class _Group:
    """The ways to match what an open parenthesis holds: of its alternatives so far, of the current one, and
    of the atom read last, which is not counted in it yet."""

    before: float = 0
    current: float = 1
    last: float = 1

    def add(self, ways: float) -> None:
        self.current *= self.last
        self.last = ways

    def branch(self) -> None:
        self.add(1)
        self.before += self.current
        self.current = self.last = 1

    def ways(self) -> float:
        self.branch()
        return self.before


def _ways(pattern: str, length: int) -> float:
    """At most so many ways to match the pattern are there in a text of this length."""
    groups = [_Group()]
    for match in _TOKEN.finditer(pattern):
        mark = match[0]
        if mark[0] == "(":
            groups.append(_Group())
        elif mark == ")" and len(groups) > 1:
            groups[-2].add(groups.pop().ways())
        elif mark == "|":
            groups[-1].branch()
        elif mark in "*+?" or _COUNTS.fullmatch(mark):
            groups[-1].last = _repeated(groups[-1].last, _most(mark, length))
        else:
            groups[-1].add(1)
        if groups[-1].last > WAYS_MAX:
            return groups[-1].last
    return groups[0].ways() * (length + 1) if len(groups) == 1 else 0


def _most(quantifier: str, length: int) -> int:
    """How often what stands before it is matched at most, in a text of this length."""
    if quantifier == "?":
        return 1
    counts = _COUNTS.fullmatch(quantifier)
    high = counts and (counts[3] if counts[2] else counts[1])
    return min(int(high[:9]), length) if high else length


def _repeated(ways: float, most: int) -> float:
    """A choice of how often, and each time one of the ways."""
    total = power = 1.0
    for _ in range(most):
        power *= ways
        total += power
        if total > WAYS_MAX:
            break
    return total
