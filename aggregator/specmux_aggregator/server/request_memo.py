"""Bounded memory of requests seen before: which prepared answer the same request got.

Two generations of a fixed size replace an LRU's bookkeeping: new entries go to the young one; when that is
full it becomes the old one, and the previous old one is dropped. An entry found in the old one moves to the
young one, so what is in use stays. Nothing enters at its first sight: a flood of requests that all differ
(random hashes, a unique header each) leaves no trace but numbers in an array of fixed size.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from specmux_aggregator.http.prepared import Prepared
from specmux_aggregator.server.protocols import ClientConnection, Leave
from specmux_aggregator.server.stats import Cell

Key = TypeVar("Key", bound=Hashable)

GENERATION_SIZE: Final = 1024
"""Entries of one generation."""

GENERATION_BYTES: Final = 16 * 1024 * 1024
"""Bytes of bodies that one generation may keep from being freed elsewhere."""

KEY_MAX: Final = 2048
"""Bytes or characters of a request that is worth remembering."""


@dataclass(frozen=True, slots=True, eq=False)
class Slot:
    """A remembered answer."""

    prepared: Prepared
    cell: Cell
    """Where it is counted."""
    leave: Leave | None = None
    """Of whom it was for; None: everybody may have it."""
    digest: bytes = b""
    """Of the request, where that must not be kept."""

    def is_for(self, connection: ClientConnection, now: float) -> bool:
        """Whether it may be given to who asks the same. ``now``: monotonic seconds."""
        return self.is_good(now) and (self.leave is None or self.leave.lasts(connection, now))

    def is_good(self, now: float) -> bool:
        """``now``: monotonic seconds."""
        until = self.prepared.good_until
        return until is None or now < until


class RequestMemo(Generic[Key]):
    """From a request to its answer. Not for keys above ``KEY_MAX``: whoever stores checks that."""

    __slots__ = ("_bytes", "_old", "_seen", "_size", "_young")

    def __init__(self, size: int = GENERATION_SIZE) -> None:
        """``size``: entries of one generation; a power of two."""
        self._size = size
        self._bytes = 0
        self._young: dict[Key, Slot] = {}
        self._old: dict[Key, Slot] = {}
        self._seen = [0] * size

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def get(self, key: Key) -> Slot | None:
        slot = self._young.get(key)
        if slot is not None:
            return slot
        slot = self._old.pop(key, None)
        if slot is not None:
            self.store(key, slot)
        return slot

    def offer(self, key: Key, slot: Slot) -> None:
        """Remember the answer, unless this is the first time that this key is offered."""
        if self.has_seen(hash(key)):
            self.store(key, slot)

    def has_seen(self, fingerprint: int) -> bool:
        """Whether what has this hash was offered before, of late; from now on it was."""
        place = fingerprint & (self._size - 1)
        if self._seen[place] == fingerprint:
            return True
        self._seen[place] = fingerprint
        return False

    def clear(self) -> None:
        self._young.clear()
        self._old.clear()
        self._bytes = 0

    def store(self, key: Key, slot: Slot) -> None:
        if len(self._young) >= self._size or self._bytes > GENERATION_BYTES:
            self._old = self._young
            self._young = {}
            self._bytes = 0
        self._young[key] = slot
        self._bytes += len(slot.prepared.body)
