"""The store of a client whose directory is unusable: the same interface, in memory, for this process
alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from specmux_cache.store.bodies import digest_of
from specmux_cache.store.keys import Key
from specmux_cache.store.rows import Digest, Metadata, Row, StoredEntry
from specmux_converters.byte_bounded import ByteBounded


class MemoryStore:
    """Bounded by the bytes of its bodies; evicts the least recently used. Thread-safe."""

    disk: Final = None

    def __init__(self, max_bytes: int, *, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._entries: ByteBounded[Key, StoredEntry] = ByteBounded(
            max_bytes, size=lambda stored: len(stored.body)
        )
        self._lock = threading.Lock()

    def get(self, key: Key) -> StoredEntry | None:
        with self._lock:
            return self._entries.get(key)

    def put(self, key: Key, body: bytes, *, metadata: Metadata) -> Digest:
        """A body larger than the whole store is not stored."""
        now = self._clock()
        digest = digest_of(body)
        row = Row(key, digest, len(body), "identity", now, now, now, MappingProxyType(dict(metadata)))
        with self._lock:
            self._entries.put(key, StoredEntry(row, body))
        return digest

    def touch(self, key: Key, *, metadata: Metadata) -> bool:
        now = self._clock()
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return False
            merged = MappingProxyType({**found.row.metadata, **metadata})
            row = replace(found.row, touched_at=now, accessed_at=now, metadata=merged)
            self._entries.put(key, replace(found, row=row))
        return True

    def delete(self, key: Key) -> bool:
        with self._lock:
            return self._entries.pop(key) is not None

    def rows(self, *prefix: str) -> Iterator[Row]:
        """Entries whose server, partition, group-version and media type start with these."""
        with self._lock:
            rows = [stored.row for stored in self._entries.values()]
        for row in rows:
            key = row.key
            if (key.server, key.partition, key.group_version, key.media_type)[: len(prefix)] == prefix:
                yield row

    def close(self) -> None:
        with self._lock:
            self._entries.clear()
