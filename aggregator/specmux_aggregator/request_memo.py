"""Bounded memory of requests seen before: which prepared answer the same request got.

Two generations of a fixed size replace an LRU's bookkeeping: new entries go to the young one; when that is
full it becomes the old one and the previous old one is dropped. An entry found in the old one moves to the
young one, so what is in use stays. Nothing enters at its first sight: a flood of requests that are all
different (random hashes, a unique header each) leaves no trace but numbers in an array of fixed size.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

Key = TypeVar("Key", bytes, tuple[str, str, str | None, str | None, str | None, str | None])
Value = TypeVar("Value")

GENERATION_SIZE: Final = 1024
"""Entries of one generation."""

KEY_MAX: Final = 2048
"""Bytes or characters of a request that is worth remembering."""


class RequestMemo(Generic[Key, Value]):
    """From a request to its answer. Not for keys above ``KEY_MAX``: whoever stores checks that."""

    __slots__ = ("_old", "_seen", "_size", "_young")

    def __init__(self, size: int = GENERATION_SIZE) -> None:
        """``size``: entries of one generation; a power of two."""
        self._size = size
        self._young: dict[Key, Value] = {}
        self._old: dict[Key, Value] = {}
        self._seen = [0] * size

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def get(self, key: Key) -> Value | None:
        value = self._young.get(key)
        if value is not None:
            return value
        value = self._old.pop(key, None)
        if value is not None:
            self._store(key, value)
        return value

    def offer(self, key: Key, value: Value) -> None:
        """Remember ``value``, unless this is the first time that this key is offered."""
        fingerprint = hash(key)
        place = fingerprint & (self._size - 1)
        if self._seen[place] == fingerprint:
            self._store(key, value)
        else:
            self._seen[place] = fingerprint

    def forget(self, key: Key) -> None:
        self._young.pop(key, None)
        self._old.pop(key, None)

    def clear(self) -> None:
        self._young.clear()
        self._old.clear()

    def _store(self, key: Key, value: Value) -> None:
        if len(self._young) >= self._size:
            self._old = self._young
            self._young = {}
        self._young[key] = value
