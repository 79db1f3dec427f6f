"""A client's storage: the disk store, or memory if that is unusable.

Invariant: a failure of the store costs a request, never an answer, and is reported once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, TypeVar

from specmux_cache.errors import StoreError, StoreUnavailable
from specmux_cache.http.caching import StoredHead, fields_from_text, fields_to_text
from specmux_cache.reading.client_runtime import IN_THREADS, Calls
from specmux_cache.store.disk_store import DiskStore
from specmux_cache.store.keys import Key
from specmux_cache.store.opening import MEMORY_BYTES, MemoryStore, Store
from specmux_cache.store.rows import Digest, Metadata, Row, StoredEntry
from specmux_converters.lazy.dataclasses import dataclass

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Entry:
    """A stored answer with its verified body."""

    key: Key
    held: StoredHead
    body: bytes
    digest: Digest


class EntryStore:
    """The entries of one client: one server, one partition."""

    def __init__(
        self,
        store: Store,
        *,
        server: str,
        partition: str,
        warn: Callable[[str], None],
        calls: Calls = IN_THREADS,
    ) -> None:
        self._store = store
        self.calls = calls
        self._server = server
        self.partition = partition
        self._warn = warn

    @property
    def disk(self) -> DiskStore | None:
        """The disk store; None in memory."""
        return self._store.disk

    def key(self, group_version: str, hash_: str, media_type: str) -> Key:
        return Key(self._server, self.partition, group_version, hash_, media_type)

    async def get(self, key: Key) -> Entry | None:
        stored = await self._run_on_store(lambda store: store.get(key), None)
        return None if stored is None else _entry(stored)

    async def first(self, keys: Iterable[Key]) -> Entry | None:
        """The first of these keys that is stored."""
        for key in keys:
            if (entry := await self.get(key)) is not None:
                return entry
        return None

    async def latest(self, group_version: str, media_types: Iterable[str]) -> Entry | None:
        """The revision confirmed last, in the first of these media types that is stored."""
        for media_type in media_types:
            rows = await self.rows(group_version, media_type)
            for row in sorted(rows, key=lambda row: row.touched_at, reverse=True):
                if (entry := await self.get(row.key)) is not None:
                    return entry
        return None

    async def put(self, key: Key, body: bytes, held: StoredHead) -> bool:
        """Returns whether it was stored. Metadata that is too large is not."""
        try:
            return await self._run_on_store(
                lambda store: bool(store.put(key, body, metadata=metadata_of(held))), False
            )
        except ValueError:
            return False

    async def touch(self, key: Key, held: StoredHead) -> None:
        await self._run_on_store(lambda store: store.touch(key, metadata=metadata_of(held)), False)

    async def delete(self, keys: Iterable[Key]) -> int:
        wanted = list(keys)
        return await self._run_on_store(lambda store: sum(store.delete(key) for key in wanted), 0)

    async def rows(self, *prefix: str) -> list[Row]:
        """Rows of this server and partition; of a group-version and a media type if given."""
        own = (self._server, self.partition, *prefix)
        return await self._run_on_store(lambda store: list(store.rows(*own)), [])

    async def on_disk(self, work: Callable[[DiskStore], T], otherwise: T) -> T:
        """Run work that only a disk store supports. Raises StoreError."""
        disk = self.disk
        return otherwise if disk is None else await self.calls.run(work, disk)

    async def close(self) -> None:
        await self.calls.run(self._store.close)

    async def _run_on_store(self, work: Callable[[Store], T], otherwise: T) -> T:
        store = self._store
        try:
            return await self.calls.run(work, store)
        except StoreUnavailable as error:
            if self._store is store:
                self._store = MemoryStore(MEMORY_BYTES, clock=time.time)
                self._warn(f"{error}; using memory instead")
                await self.calls.run(store.close)
            return otherwise
        except StoreError:
            return otherwise


def metadata_of(held: StoredHead) -> Metadata:
    """The metadata of a row. ``selecting`` was already reduced to what may be stored."""
    return {
        "fields": fields_to_text(held.fields),
        "requested_at": held.requested_at,
        "received_at": held.received_at,
        "selecting": fields_to_text(tuple((name, value or "") for name, value in held.selecting.items())),
        "absent": ",".join(name for name, value in held.selecting.items() if value is None),
        "lossy": held.is_lossy,
    }


def read_stored_head(metadata: Mapping[str, Any]) -> StoredHead | None:
    """None for metadata that ``metadata_of`` did not write; counts as absent."""
    try:
        absent = set(str(metadata["absent"]).split(","))
        return StoredHead(
            fields=fields_from_text(metadata["fields"]),
            requested_at=float(metadata["requested_at"]),
            received_at=float(metadata["received_at"]),
            selecting=MappingProxyType(
                {
                    name: None if name in absent else value
                    for name, value in fields_from_text(metadata["selecting"])
                }
            ),
        )
    except (KeyError, TypeError, ValueError):
        return None


def _entry(stored: StoredEntry) -> Entry | None:
    held = read_stored_head(stored.row.metadata)
    return None if held is None else Entry(stored.row.key, held, stored.body, stored.row.digest)
