"""Maps that an expression makes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from specmux_schemas.validation.rules.cel.values.comparison import equal
from specmux_schemas.validation.rules.cel.values.values import MISSING, CelError, MapValue, shown


class LiteralMap(MapValue):
    """A map that an expression made. Keys that are equal as numbers are one; true is no 1."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Iterable[tuple[Any, Any]] = ()) -> None:
        self._entries = {_key(key): (key, value) for key, value in entries}

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[Any]:
        return (key for key, _ in self._entries.values())

    def at_key(self, key: Any) -> Any:
        try:
            found = self._entries.get(_key(key))
        except TypeError:
            return MISSING
        return MISSING if found is None else found[1]

    def insert(self, key: Any, value: Any) -> None:
        """Of a map that nobody else has yet. Raises CelError for a key that is there."""
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
    return (key,) if type(key) is bool else key
