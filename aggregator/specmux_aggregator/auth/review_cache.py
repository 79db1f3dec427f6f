"""A bounded cache of results with expiry; evicts the least recently used."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from math import inf
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ReviewEntry(Generic[V]):
    """One value. Its expiry distinguishes it from a later one in its place."""

    __slots__ = ("until", "value")

    def __init__(self, value: V, until: float) -> None:
        self.value = value
        self.until = until


class ReviewCache(Generic[K, V]):
    """Values by key until their expiry. Times are monotonic seconds.

    ``grace``: seconds for which ``get_expired`` still returns an expired value.
    """

    __slots__ = ("_entries", "_grace", "_size")

    def __init__(self, size: int, *, grace: float = 0.0) -> None:
        self._size = size
        self._grace = grace
        self._entries: OrderedDict[K, ReviewEntry[V]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K, now: float) -> V | None:
        entry = self.entry(key, now)
        return None if entry is None else entry.value

    def entry(self, key: K, now: float) -> ReviewEntry[V] | None:
        entry = self._entries.get(key)
        if entry is None:
            return None
        if now >= entry.until:
            if now >= entry.until + self._grace:
                del self._entries[key]
            return None
        self._entries.move_to_end(key)
        return entry

    def get_expired(self, key: K, now: float) -> V | None:
        """The last value, even if expired, within the grace."""
        entry = self._entries.get(key)
        return None if entry is None or now >= entry.until + self._grace else entry.value

    def forget(self, key: K) -> None:
        _end(self._entries.pop(key, None))

    def put(self, key: K, value: V, *, until: float) -> None:
        _end(self._entries.pop(key, None))
        self._entries[key] = ReviewEntry(value, until)
        if len(self._entries) > self._size:
            _end(self._entries.popitem(last=False)[1])


def _end(entry: ReviewEntry[V] | None) -> None:
    if entry is not None:
        entry.until = -inf
