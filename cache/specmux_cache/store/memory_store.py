"""The store of a client whose directory cannot be used: the same calls, in memory, for this process alone."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from specmux_cache.store.bodies import digest_of
from specmux_cache.store.keys import Key
from specmux_cache.store.rows import Digest, Metadata, Row, Stored


class MemoryStore:
    """Bounded by the bytes of its bodies; the least recently used goes first. Safe across threads."""

    disk: Final = None

    def __init__(self, max_bytes: int, *, clock: Callable[[], float]) -> None:
        self._max_bytes = max_bytes
        self._clock = clock
        self._entries: OrderedDict[Key, Stored] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, key: Key) -> Stored | None:
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._entries.move_to_end(key)
            return found

    def put(self, key: Key, body: bytes, *, metadata: Metadata) -> Digest:
        """A body larger than the whole store is not kept."""
        now = self._clock()
        digest = digest_of(body)
        row = Row(key, digest, len(body), "identity", now, now, now, MappingProxyType(dict(metadata)))
        with self._lock:
            self._remove(key)
            if len(body) <= self._max_bytes:
                self._entries[key] = Stored(row, body)
                self._bytes += len(body)
            while self._bytes > self._max_bytes:
                self._remove(next(iter(self._entries)))
        return digest

    def touch(self, key: Key, *, metadata: Metadata) -> bool:
        now = self._clock()
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return False
            merged = MappingProxyType({**found.row.metadata, **metadata})
            row = replace(found.row, touched_at=now, accessed_at=now, metadata=merged)
            self._entries[key] = replace(found, row=row)
            self._entries.move_to_end(key)
        return True

    def delete(self, key: Key) -> bool:
        with self._lock:
            return self._remove(key)

    def rows(self, *prefix: str) -> Iterator[Row]:
        """Entries whose server, partition, group-version and media type begin with these."""
        with self._lock:
            rows = [stored.row for stored in self._entries.values()]
        for row in rows:
            key = row.key
            if (key.server, key.partition, key.group_version, key.media_type)[: len(prefix)] == prefix:
                yield row

    def close(self) -> None:
        with self._lock:
            self._entries.clear()
            self._bytes = 0

    def _remove(self, key: Key) -> bool:
        found = self._entries.pop(key, None)
        if found is not None:
            self._bytes -= len(found.body)
        return found is not None
