"""Maps that an expression makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from specmux_tools.validation.rules.cel.values.comparison import equal
from specmux_tools.validation.rules.cel.values.values import (
    INT_MAX,
    INT_MIN,
    MISSING,
    UINT_MAX,
    CelError,
    CelPanic,
    MapValue,
    UInt,
    shown,
)


class LiteralMap(MapValue):
    """A map that an expression made. Keys of different types differ, but an int finds a uint, a uint an int,
    and a double both (cel-go, types/map.go, refValMapAccessor)."""

    __slots__ = ("_entries",)
    go_name = "*types.baseMap"

    def __init__(self, entries: Iterable[tuple[Any, Any]] = ()) -> None:
        self._entries = {_key(key): (key, value) for key, value in entries}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Any]:
        return (key for key, _ in self._entries.values())

    def at_key(self, key: Any) -> Any:
        if type(key) is bytes and self._entries:
            raise CelPanic("internal error: runtime error: hash of unhashable type types.Bytes")
        for each in (key, *_equals(key)):
            found = self._entries.get(_key(each))
            if found is not None:
                return found[1]
        return MISSING

    def insert(self, key: Any, value: Any) -> None:
        """Add a member to a map that nobody else has yet. Raises CelError for a key that is there."""
        if (written := _key(key)) in self._entries:
            raise CelError(f"insert failed: key {shown(key)} already exists")
        self._entries[written] = (key, value)

    def same(self, other: Any) -> bool:
        if not isinstance(other, MapValue) or len(other) != len(self):
            return False
        return all(
            (theirs := other.at_key(key)) is not MISSING and equal(value, theirs)
            for key, value in self._entries.values()
        )

    def native(self) -> Any:
        return self


def _key(key: Any) -> Any:
    return key if type(key) is str else (type(key), key)


def _equals(key: Any) -> Iterator[Any]:
    """Keys of other types that the key finds, in order."""
    if type(key) is float and key.is_integer():
        key = int(key)
        if INT_MIN <= key <= INT_MAX:
            yield key
    elif type(key) is UInt:
        if key <= INT_MAX:
            yield int(key)
        return
    if type(key) is int and 0 <= key <= UINT_MAX:
        yield UInt(key)
