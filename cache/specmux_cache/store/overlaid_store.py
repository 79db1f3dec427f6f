"""OverlaidStore: a read-only disk store, and above it new entries in memory."""

from __future__ import annotations

from collections.abc import Iterator

from specmux_cache.store.disk_store import DiskStore
from specmux_cache.store.keys import Key
from specmux_cache.store.memory_store import MemoryStore
from specmux_cache.store.rows import Digest, Metadata, Row, StoredEntry


class OverlaidStore:
    """For one process. Thread-safe: a concurrent call sees either state."""

    def __init__(self, disk: DiskStore, above: MemoryStore) -> None:
        self.disk = disk
        self._above = above
        self._deleted: set[Key] = set()

    def get(self, key: Key) -> StoredEntry | None:
        found = self._above.get(key)
        return found or (None if key in self._deleted else self.disk.get(key))

    def put(self, key: Key, body: bytes, *, metadata: Metadata) -> Digest:
        return self._above.put(key, body, metadata=metadata)

    def touch(self, key: Key, *, metadata: Metadata) -> bool:
        if self._above.touch(key, metadata=metadata):
            return True
        found = self.get(key)
        if found is None:
            return False
        self._above.put(key, found.body, metadata={**found.row.metadata, **metadata})
        return True

    def delete(self, key: Key) -> bool:
        was_there = self.get(key) is not None
        self._above.delete(key)
        if was_there:
            self._deleted.add(key)
        return was_there

    def rows(self, *prefix: str) -> Iterator[Row]:
        above = {row.key: row for row in self._above.rows(*prefix)}
        yield from above.values()
        for row in self.disk.rows(*prefix):
            if row.key not in above and row.key not in self._deleted:
                yield row

    def close(self) -> None:
        self._above.close()
        self.disk.close()
