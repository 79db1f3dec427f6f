"""What the disk has of one server, for a program that asks nobody: no event loop, no HTTP library.

Answers are those of ``SchemaCache`` with ``CacheOptions(offline=True)``, which take three times as long to
import.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType, TracebackType
from typing import Self

from specmux_cache.discovery import Document, parse_discovery
from specmux_cache.errors import GroupVersionNotFound, NotCached, StoreError
from specmux_cache.http.freshness import Rule, Use, age_of, selects, usage
from specmux_cache.http.header_fields import AGE_MAX, fields_of, replaced
from specmux_cache.http.media_types import JSON, canonical
from specmux_cache.http.responses import Entry, Held, held_from
from specmux_cache.http.server import ROOT_PATH, Server, name_of
from specmux_cache.options import CacheOptions
from specmux_cache.results import Paths, Prefetched, Resource, Schema
from specmux_cache.store.keys import Key, partition_of
from specmux_cache.store.opening import Store, open_store
from specmux_cache.store.rows import Row


class OfflineCache:
    """Use as a context manager. Raises NotCached for what is not stored, GroupVersionNotFound for what the
    stored root does not name."""

    def __init__(
        self,
        server: str,
        options: CacheOptions,
        *,
        headers: Mapping[str, str] = MappingProxyType({}),
        identity: str = "",
        warn: Callable[[str], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``headers`` and ``identity`` say whose entries are used, as with ``AsyncSchemaCache``. Raises
        ValueError for a server that is no http(s) URL."""
        self.server = Server.parse(server)
        self._options = options
        self._headers = headers
        self._identity = identity
        self._warn = warn
        self._clock = clock
        self._store: Store | None = None
        self.partition = options.partition or ""
        """Whose entries are used, once it is open."""

    def __enter__(self) -> Self:
        options = self._options
        self._store, _, secret = open_store(
            options.directory, limits=options.limits, clock=self._clock, warn=self._warn
        )
        self.partition = options.partition or partition_of(
            self._headers, identity=self._identity, secret=secret
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None

    def paths(self) -> Paths:
        entry = self._current(ROOT_PATH, "", (JSON,))
        found = parse_discovery(entry.body, self.server)
        return Paths(found.documents, found.refused, True, self._is_stale(entry.held), self._age(entry))

    def schema(self, group_version: str, *, media: str | None = None) -> Schema:
        """A group-version is a key of the root. ``media`` as with ``AsyncSchemaCache.schema``."""
        root = self.paths()
        document: Document | None = root.documents.get(group_version)
        if document is None:
            raise GroupVersionNotFound(group_version, server=str(self.server))
        accepted = self._options.accepted if media is None else (canonical(media),)
        entry = self._current(group_version, document.hash, accepted)
        is_other = entry.key.hash != document.hash
        return Schema(
            group_version=group_version,
            media_type=entry.key.media_type,
            body=entry.body,
            digest=entry.digest,
            hash=entry.key.hash,
            etag=entry.held.etag,
            from_cache=True,
            stale=root.stale or is_other or (not document.hash and self._is_stale(entry.held)),
            age=self._age(entry),
            lossy=entry.held.is_lossy,
        )

    def resource(self, path: str, *, headers: Mapping[str, str] = MappingProxyType({})) -> Resource:
        """Raises ValueError for a path outside of /api, /apis and /openapi."""
        target = self.server.target(path) if path.startswith("/") else None
        if target is None:
            raise ValueError("a path of this server below /api, /apis or /openapi")
        name, fields = name_of(target), fields_of(headers.items())
        held = [(row.key, found) for row in self._rows(name) if (found := held_from(row.metadata))]
        matching = [(key, found) for key, found in held if selects(found, fields)]
        matching.sort(key=lambda pair: pair[1].received_at, reverse=True)
        entry = self._first(key for key, _ in matching)
        if entry is None:
            raise NotCached(name)
        now = self._clock()
        is_stale = usage(entry.held, Rule.PLAIN, self._options.tolerance, now=now) is not Use.FRESH
        age = min(age_of(entry.held, now=now), float(AGE_MAX))
        aged = replaced(entry.held.fields, (("age", str(int(age))),))
        return Resource(200, aged, entry.body, True, is_stale, age)

    def prefetch(self, group_versions: Iterable[str]) -> Prefetched:
        """Nothing is fetched."""
        return Prefetched((), (), MappingProxyType({}))

    def _current(self, name: str, hash_: str, accepted: tuple[str, ...]) -> Entry:
        """The revision of this hash, else the one confirmed last. Raises NotCached."""
        entry = self._first(Key(str(self.server), self.partition, name, hash_, media) for media in accepted)
        if entry is not None:
            return entry
        for media in accepted:
            rows = sorted(self._rows(name, media), key=lambda row: row.touched_at, reverse=True)
            entry = self._first(row.key for row in rows)
            if entry is not None:
                return entry
        raise NotCached(name)

    def _first(self, keys: Iterable[Key]) -> Entry | None:
        for key in keys:
            entry = self._get(key)
            if entry is not None:
                return entry
        return None

    def _get(self, key: Key) -> Entry | None:
        try:
            stored = self._open.get(key)
        except StoreError:
            return None
        held = None if stored is None else held_from(stored.row.metadata)
        if stored is None or held is None:
            return None
        return Entry(stored.row.key, held, stored.body, stored.row.digest)

    def _rows(self, *names: str) -> list[Row]:
        try:
            return list(self._open.rows(str(self.server), self.partition, *names))
        except StoreError:
            return []

    def _is_stale(self, held: Held) -> bool:
        return usage(held, Rule.REVALIDATED, self._options.tolerance, now=self._clock()) is not Use.FRESH

    def _age(self, entry: Entry) -> float:
        return max(0.0, self._clock() - entry.held.received_at)

    @property
    def _open(self) -> Store:
        if self._store is None:
            raise RuntimeError("the cache is not open: use it as a context manager")
        return self._store
