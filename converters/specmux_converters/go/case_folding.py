"""Characters that differ only in case, by Go's rules (unicode.SimpleFold): "s", "S" and U+017F are
equivalent."""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from functools import cache


def alike(character: str) -> tuple[str, ...]:
    """The character and its equivalents."""
    return _orbits().get(_simple(character), (character,))


def with_other_cases(ranges: Iterable[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The ranges of characters, and one for each character that differs only in case from one of them."""
    given = tuple(ranges)
    first = [begin for begin, _ in given]
    return (
        *given,
        *(
            (ord(each), ord(each))
            for orbit in _orbits().values()
            if any(
                given[at][1] >= ord(one) for one in orbit if (at := bisect_right(first, ord(one)) - 1) >= 0
            )
            for each in orbit
        ),
    )


@cache
def _orbits() -> dict[str, tuple[str, ...]]:
    """Equivalence classes of characters with a case."""
    found: dict[str, list[str]] = defaultdict(list)
    for character in map(chr, range(min(sys.maxunicode, 0x1FFFF) + 1)):
        folded = _simple(character)
        if folded != character:
            found[folded].append(character)
    return {folded: (folded, *others) for folded, others in found.items()}


def _simple(character: str) -> str:
    """Simple folding (CaseFolding.txt, C and S): one character to one."""
    return next((each for each in (character.casefold(), character.lower()) if len(each) == 1), character)
