"""Memory of what is kept: a cache bounded by the sum of its values' sizes, and bytes without spare room."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class ByteBounded(Generic[K, V]):
    """Evicts the least recently used. Not thread-safe."""

    __slots__ = ("_dropped", "_max_bytes", "_max_each", "_size", "_values", "bytes")

    def __init__(
        self,
        max_bytes: int,
        *,
        size: Callable[[V], int],
        max_each: int | None = None,
        dropped: Callable[[K], None] | None = None,
    ) -> None:
        """``size``: of a value, in bytes or any other unit. A value above ``max_each``, by default
        ``max_bytes``, is not kept. ``dropped`` is called with each evicted key."""
        self._max_bytes = max_bytes
        self._max_each = max_bytes if max_each is None else max_each
        self._size = size
        self._dropped = dropped
        self._values: OrderedDict[K, V] = OrderedDict()
        self.bytes = 0

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[K]:
        """Least recently used first."""
        return iter(self._values)

    def peek(self, key: K) -> V | None:
        """The value like ``get``, without marking it as used."""
        return self._values.get(key)

    def get(self, key: K) -> V | None:
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> bool:
        """Store a value; returns whether it was kept. The key's previous value is dropped in any case."""
        self.pop(key)
        size = self._size(value)
        if size > self._max_each:
            return False
        self._values[key] = value
        self.bytes += size
        while self.bytes > self._max_bytes:
            gone = next(iter(self._values))
            self.pop(gone)
            if self._dropped is not None:
                self._dropped(gone)
        return True

    def pop(self, key: K) -> V | None:
        value = self._values.pop(key, None)
        if value is not None:
            self.bytes -= self._size(value)
        return value

    def values(self) -> list[V]:
        """Least recently used first."""
        return list(self._values.values())

    def clear(self) -> None:
        self._values.clear()
        self.bytes = 0


def in_own_memory(text: bytes) -> bytes:
    """A copy of ``text`` that occupies no more memory than its length.

    ``orjson.dumps`` truncates its buffer in place, and the allocator cannot reuse the rest: each small text
    that is kept costs 4 KiB. A hundred thousand of them take 400 MB for 10 MB of JSON.
    """
    # The cheapest call that copies: a join of one part returns it.
    return b"".join((text, b""))
