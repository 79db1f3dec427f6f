"""Characters that differ in case alone, as Go has them (unicode.SimpleFold): "s", "S" and U+017F are one."""

from __future__ import annotations

import sys
from collections import defaultdict
from functools import cache


def alike(character: str) -> tuple[str, ...]:
    """The character and those that it is folded with."""
    return _orbits().get(_simple(character), (character,))


@cache
def _orbits() -> dict[str, tuple[str, ...]]:
    """Of characters with a case, of which one folds to another."""
    found: dict[str, list[str]] = defaultdict(list)
    for character in map(chr, range(min(sys.maxunicode, 0x1FFFF) + 1)):
        folded = _simple(character)
        if folded != character:
            found[folded].append(character)
    return {folded: (folded, *others) for folded, others in found.items()}


def _simple(character: str) -> str:
    """Simple folding (CaseFolding.txt, C and S): one character for one."""
    return next((each for each in (character.casefold(), character.lower()) if len(each) == 1), character)
