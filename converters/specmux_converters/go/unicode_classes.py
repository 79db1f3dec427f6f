"""Unicode's categories and scripts, as \\p{…} of Go's regexp names them.

``unicode_classes.json`` has Go's tables, so answers depend on no version of Python or RE2. Names are as since
Go 1.25, with which Kubernetes 1.35 is built, and scripts of two words, which it refuses, as before.
Characters that differ only in case are Go's too (unicode.SimpleFold): "s", "S" and U+017F are equivalent.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from functools import cache, lru_cache
from itertools import accumulate
from pkgutil import get_data
from sys import maxunicode
from typing import Any, Final, TypeAlias

import orjson

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""First and last code points, sorted."""

_IGNORED: Final = str.maketrans("", "", "_- ")


@lru_cache(maxsize=256)
def unicode_ranges(name: str) -> Ranges | None:
    """None if Go has no class of that name, given without a ``^``."""
    match _fold(name):
        case "any":
            return ((0, maxunicode),)
        case "ascii":
            return ((0, 127),)
        case "assigned":
            return complement(_ranges("Cn"))
        case folded:
            parts = _data()[1].get(folded)
    return None if parts is None else tuple(sorted(each for part in parts for each in _ranges(part)))


def complement(ranges: Ranges) -> Ranges:
    """All other characters."""
    found, begin = [], 0
    for first, last in sorted(ranges):
        if begin < first:
            found.append((begin, first - 1))
        begin = max(begin, last + 1)
    return (*found, (begin, maxunicode)) if begin <= maxunicode else tuple(found)


@cache
def _ranges(name: str) -> Ranges:
    edges = list(accumulate(_data()[0][name]))
    return tuple((edges[at], edges[at + 1] - 1) for at in range(0, len(edges) - 1, 2))


@cache
def _data() -> tuple[dict[str, list[int]], dict[str, list[str]]]:
    """Classes, and of which of them each name is made."""
    data: dict[str, Any] = orjson.loads(get_data(__package__, "unicode_classes.json") or b"")
    classes: dict[str, list[int]] = data["classes"]
    names = {name: [name] for name in classes}
    for category in "CLMNPSZ":
        names[category] = [name for name in classes if len(name) == 2 and name[0] == category]
    names["LC"] = ["Ll", "Lt", "Lu"]
    names |= {alias: names[name] for alias, name in data["aliases"].items()}
    return classes, {_fold(name): parts for name, parts in names.items()}


def _fold(name: str) -> str:
    return name.lower().translate(_IGNORED)


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
