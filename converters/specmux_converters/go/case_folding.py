"""Characters that differ only in case, by Go's rules (unicode.SimpleFold): "s", "S" and U+017F are
equivalent."""

from __future__ import annotations

import sys
from collections import defaultdict
from functools import cache


def alike(character: str) -> tuple[str, ...]:
    """The character and its equivalents."""
    return _orbits().get(_simple(character), (character,))


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
