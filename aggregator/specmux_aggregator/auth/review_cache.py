"""What was found out, for a while. Bounded: what was unused for longest goes first."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Remembered(Generic[K, V]):
    """Values by key, each until its time has come. Times are monotonic seconds.

    ``grace``: seconds for which ``get_expired`` still has a value after its time.
    """

    __slots__ = ("_entries", "_grace", "_size")

    def __init__(self, size: int, *, grace: float = 0.0) -> None:
        self._size = size
        self._grace = grace
        self._entries: OrderedDict[K, tuple[V, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K, now: float) -> V | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        value, until = entry
        if now >= until:
            if now >= until + self._grace:
                del self._entries[key]
            return None
        self._entries.move_to_end(key)
        return value

    def get_expired(self, key: K, now: float) -> V | None:
        """What was found out last, also when its time is over, within the grace."""
        entry = self._entries.get(key)
        return None if entry is None or now >= entry[1] + self._grace else entry[0]

    def forget(self, key: K) -> None:
        self._entries.pop(key, None)

    def put(self, key: K, value: V, *, until: float) -> None:
        self._entries[key] = value, until
        self._entries.move_to_end(key)
        if len(self._entries) > self._size:
            self._entries.popitem(last=False)
