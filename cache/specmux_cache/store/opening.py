"""Open a client's store: on disk if possible, else in memory, for this process alone; and the secret of its
partitions."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Final, Protocol

from specmux_cache.errors import StoreError
from specmux_cache.store.bodies import digest_of, open_file
from specmux_cache.store.disk_store import DiskStore
from specmux_cache.store.keys import Key
from specmux_cache.store.limits import StoreLimits
from specmux_cache.store.rows import Digest, Metadata, Row, StoredEntry
from specmux_converters.memory import ByteBounded

MEMORY_BYTES: Final = 32 * 1024 * 1024
"""Most bytes of bodies in a client without a directory."""
FLIGHTS: Final = "flights"
PARTITION_KEY: Final = "partition.key"
SECRET_BYTES: Final = 32


class Store(Protocol):
    """The common interface of DiskStore, MemoryStore and OverlaidStore."""

    @property
    def disk(self) -> DiskStore | None: ...
    def get(self, key: Key) -> StoredEntry | None: ...
    def put(self, key: Key, body: bytes, *, metadata: Metadata) -> Digest: ...
    def touch(self, key: Key, *, metadata: Metadata) -> bool: ...
    def delete(self, key: Key) -> bool: ...
    def rows(self, *prefix: str) -> Iterator[Row]: ...
    def close(self) -> None: ...


def open_store(
    directory: Path | None,
    *,
    limits: StoreLimits,
    clock: Callable[[], float],
    warn: Callable[[str], None],
) -> tuple[Store, Path | None, bytes]:
    """The store, the directory of its lock files, and the secret from which partitions are derived.
    Blocks."""
    if directory is not None:
        try:
            store = DiskStore.open(directory, limits=limits, clock=clock, warn=warn)
            if store.is_read_only:
                return _overlaid(store, clock)
            try:
                return store, store.directory / FLIGHTS, _secret(store.directory / PARTITION_KEY)
            except OSError as error:
                store.close()
                warn(f"cache directory {directory}: {error.strerror or error}; using memory instead")
        except StoreError as error:
            warn(f"{error}; using memory instead")
    return MemoryStore(MEMORY_BYTES, clock=clock), None, os.urandom(SECRET_BYTES)


def _overlaid(store: DiskStore, clock: Callable[[], float]) -> tuple[Store, None, bytes]:
    """A caller that cannot read the secret uses entries of anonymous or named partitions."""

    secret = os.urandom(SECRET_BYTES)
    with contextlib.suppress(OSError):
        secret = _read_secret(store.directory / PARTITION_KEY) or secret
    return OverlaidStore(store, MemoryStore(MEMORY_BYTES, clock=clock)), None, secret


def _read_secret(path: Path) -> bytes | None:
    with os.fdopen(open_file(path, os.O_RDONLY), "rb") as file:
        found = file.read(SECRET_BYTES + 1)
    return found if len(found) == SECRET_BYTES else None


def _secret(path: Path) -> bytes:
    """The directory's secret, created by the first caller. Raises OSError."""
    for _ in range(3):
        with contextlib.suppress(FileNotFoundError):
            if (found := _read_secret(path)) is not None:
                return found
            path.unlink()
        beside = path.with_name(f"{path.name}.{os.urandom(8).hex()}")
        descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.write(descriptor, os.urandom(SECRET_BYTES))
        finally:
            os.close(descriptor)
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(beside)
        beside.unlink()
    raise OSError("its secret cannot be kept")


class OverlaidStore:
    """A read-only directory under a layer in memory, for one process. Thread-safe: a concurrent call sees
    either state."""

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
