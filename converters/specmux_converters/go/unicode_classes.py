"""Unicode's categories and scripts, as \\p{…} of Go's regexp names them.

``unicode_classes.json`` has Go's tables, so answers depend on no Python's version. Names are as since
Go 1.25, with which Kubernetes 1.35 is built, and scripts of two words, which it refuses, as before.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from functools import cache, lru_cache
from itertools import accumulate
from pkgutil import get_data
from typing import Any, Final

import orjson

_IGNORED: Final = str.maketrans("", "", "_- ")
_ASCII_SIZE: Final = 128


@lru_cache(maxsize=256)
def unicode_class(name: str) -> Callable[[str], bool] | None:
    """Whether a character is in it; None if Go has no class of that name, given without a ``^``."""
    match _folded(name):
        case "any":
            return lambda _: True
        case "ascii":
            return lambda character: ord(character) < _ASCII_SIZE
        case "assigned":
            unassigned = _edges("Cn")
            return lambda character: bisect_right(unassigned, ord(character)) % 2 == 0
        case folded:
            parts = _data()[1].get(folded)
    if parts is None:
        return None
    tables = [_edges(part) for part in parts]
    return lambda character: any(bisect_right(table, ord(character)) % 2 for table in tables)


@cache
def _edges(name: str) -> tuple[int, ...]:
    """Code points at which the class begins and ends in turn."""
    return tuple(accumulate(_data()[0][name]))


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
    return classes, {_folded(name): parts for name, parts in names.items()}


def _folded(name: str) -> str:
    return name.lower().translate(_IGNORED)
