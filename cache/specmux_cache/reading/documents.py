"""Read the root, documents and other resources. Written once for clients with and without an event loop.

This module opens a client's parts and defines requests and results; ``fetch`` performs them,
``http.caching`` decides.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

import orjson

from specmux_cache.errors import CacheError, GroupVersionNotFound, UnexpectedStatus
from specmux_cache.http.caching import AGE_MAX, FreshnessRule, age_of, fields_of, replace_fields
from specmux_cache.http.media_types import JSON, accepted_for
from specmux_cache.http.server import ROOT_PATH, Server, hash_in, name_of
from specmux_cache.reading.client_runtime import Calls
from specmux_cache.reading.decoding import check_document
from specmux_cache.reading.entry_store import EntryStore
from specmux_cache.reading.fetch import CHECK_INLINE, ClientRuntime, Exchange, ExchangeRequest, ExchangeResult
from specmux_cache.reading.flight_locks import FlightLocks
from specmux_cache.reading.options import CacheOptions
from specmux_cache.reading.results import Document, Paths, PrefetchResult, Resource, Schema
from specmux_cache.store.opening import open_store
from specmux_converters.group_versions import named_group_version
from specmux_converters.json_text import may_have_more_values
from specmux_converters.json_values import mapping
from specmux_converters.lazy.dataclasses import dataclass

if TYPE_CHECKING:  # imported for a request
    from specmux_cache.http.transport import Transport

VALUES_MAX: Final = 200_000
"""Most JSON values of a root: twenty thousand group-versions."""
NOT_OPEN: Final = "the cache is not open: use it as a context manager, or call open() first"
NOT_PER_REQUEST: Final = frozenset(
    {"authorization", "cookie", "if-modified-since", "if-none-match", "proxy-authorization", "range"}
)
"""Fields that identify the caller, which only the client may set, and those that the cache decides on."""


@dataclass(frozen=True, slots=True)
class Discovery:
    """The parsed root, sorted by group-version."""

    documents: Mapping[str, Document]
    refused: tuple[str, ...]
    """Group-versions whose URL is malformed or leads to another server."""


def parse_discovery(body: bytes, server: Server) -> Discovery:
    """Raises ValueError for a body that is not a discovery root."""
    if may_have_more_values(body, VALUES_MAX):
        raise ValueError(f"the discovery root has more than {VALUES_MAX} values")
    try:
        tree = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise ValueError("the discovery root is not JSON") from error
    paths = tree.get("paths", tree.get("Paths")) if isinstance(tree, dict) else None
    if not isinstance(paths, dict):
        raise ValueError("the discovery root has no paths")
    documents: dict[str, Document] = {}
    refused: list[str] = []
    for group_version, entry in sorted(paths.items()):
        reference = mapping(entry).get("serverRelativeURL")
        target = (
            server.target(reference) if isinstance(reference, str) and reference.startswith("/") else None
        )
        if target is None or not target.startswith(ROOT_PATH + "/"):
            refused.append(group_version)
        else:
            documents[group_version] = Document(group_version, target, hash_in(target))
    return Discovery(MappingProxyType(documents), tuple(refused))


@dataclass(frozen=True, slots=True)
class Root:
    """The discovery root as of one request."""

    server: str
    discovery: Discovery
    obtained: ExchangeResult

    def document(self, group_version: str) -> Document:
        """Its location. ``apps/v1`` and ``v1`` are accepted for keys that start with ``apis/`` and ``api/``.

        Raises GroupVersionNotFound.
        """
        documents = self.discovery.documents
        found = documents.get(group_version) or documents.get(named_group_version(group_version))
        if found is None:
            raise GroupVersionNotFound(group_version, server=self.server)
        return found


class Catalog:
    """The root of one server. Raises what Exchange raises."""

    def __init__(
        self,
        server: Server,
        exchange: Exchange,
        *,
        options: CacheOptions,
        calls: Calls,
        clock: Callable[[], float],
    ) -> None:
        self._server = server
        self._url = str(server)
        self._calls = calls
        self._exchange = exchange
        self._options = options
        self._clock = clock
        self._absent: dict[str, float] = {}
        self._parsed: tuple[str, Discovery] | None = None
        self._wanted = ExchangeRequest(
            name=ROOT_PATH,
            target=ROOT_PATH,
            rule=FreshnessRule.REVALIDATED,
            accepted=(JSON,),
            check=lambda body, _: parse_discovery(body, server),
        )

    async def root(self, *, refresh: bool = False) -> Root:
        """``refresh`` asks the server even if the root is still trusted; offline, the server is never
        asked."""
        obtained = await self._exchange.obtain(self._wanted, refresh=refresh)
        entry = obtained.entry
        if self._parsed is None or self._parsed[0] != entry.digest:
            if len(entry.body) <= CHECK_INLINE:
                discovery = parse_discovery(entry.body, self._server)
            else:
                discovery = await self._calls.run(parse_discovery, entry.body, self._server)
            self._parsed = entry.digest, discovery
        return Root(self._url, self._parsed[1], obtained)

    async def find(self, group_version: str, *, refresh: bool = False) -> tuple[Root, Document]:
        """The document, after requesting the root again if it was cached. Raises GroupVersionNotFound."""
        if 0 < self._absent.get(group_version, 0) - self._clock() <= self._options.not_found_ttl:
            raise GroupVersionNotFound(group_version, server=self._url)
        while True:
            root = await self.root(refresh=refresh)
            try:
                return root, root.document(group_version)
            except GroupVersionNotFound:
                if refresh or root.obtained.is_confirmed or self._options.offline:
                    self._miss(group_version)
                    raise
            refresh = True

    def forget(self, group_version: str | None = None) -> None:
        """Forget that it was absent; None: all of them."""
        if group_version is None:
            self._absent.clear()
        else:
            self._absent.pop(group_version, None)

    def _miss(self, group_version: str) -> None:
        now = self._clock()
        self._absent = {name: until for name, until in self._absent.items() if until > now}
        self._absent[group_version] = now + self._options.not_found_ttl


@dataclass(frozen=True, slots=True)
class OpenCache:
    """The parts of an open client, on one event loop or in place. Its owner closes the exchange, then the
    store."""

    entry_store: EntryStore
    exchange: Exchange
    catalog: Catalog


class ServerDocuments:
    """The part of a client that reads. Raises what Exchange raises."""

    server: Server
    _accepted: tuple[str, ...]
    _clock: Callable[[], float]
    _opened: OpenCache | None = None

    async def paths(self, *, refresh: bool = False) -> Paths:
        """The discovery root. ``refresh`` asks the server even within ``root_ttl``."""
        root = await self._open.catalog.root(refresh=refresh)
        found, obtained = root.discovery, root.obtained
        age = self._since(obtained)
        return Paths(found.documents, found.refused, obtained.from_cache, obtained.is_stale, age)

    async def schema(self, group_version: str, *, media: str | None = None) -> Schema:
        """The document as bytes. ``media``: a media type, or json, cbor, protobuf; None goes by the options.
        ``schemas`` is JSON without paths where the server has that, else all of it.

        A group-version is a key of the root; ``apps/v1`` and ``v1`` will do for ``apis/apps/v1`` and
        ``api/v1``. Raises GroupVersionNotFound; MediaTypeRefused for a media type that the server does not
        give it in.
        """
        catalog = self._open.catalog
        accepted = None if media is None else accepted_for(media)
        root, document = await catalog.find(group_version)
        try:
            return await self._represent(root, document, accepted)
        except UnexpectedStatus as error:
            # The root with its URL was not requested now, and the document may have moved since.
            if error.status not in (404, 410) or root.obtained.is_confirmed:
                raise
        root, document = await catalog.find(group_version, refresh=True)
        return await self._represent(root, document, accepted)

    async def resource(self, path: str, *, headers: Mapping[str, str] = MappingProxyType({})) -> Resource:
        """Any GET below /api, /apis or /openapi, by RFC 9111. Any status is a result; only 200 is ever
        stored.

        Raises ValueError for a path elsewhere, and for headers that are not one request's to set.
        """
        target = self.server.target(path) if path.startswith("/") else None
        if target is None:
            raise ValueError("a path of this server below /api, /apis or /openapi")
        fields = fields_of(headers.items())
        if not NOT_PER_REQUEST.isdisjoint(name for name, _ in fields):
            raise ValueError("credentials go with the client; conditions and ranges are the cache's")
        obtained = await self._open.exchange.obtain(
            ExchangeRequest(name_of(target), target, FreshnessRule.PLAIN, fields=fields)
        )
        held = obtained.entry.held
        age = min(age_of(held, now=self._clock()), float(AGE_MAX))
        kept = replace_fields(held.fields, (("age", str(int(age))),)) if obtained.from_cache else held.fields
        return Resource(
            obtained.status, kept, obtained.entry.body, obtained.from_cache, obtained.is_stale, age
        )

    @property
    def _open(self) -> OpenCache:
        if self._opened is None:
            raise RuntimeError(NOT_OPEN)
        return self._opened

    async def _represent(
        self, root: Root, document: Document, accepted: tuple[str, ...] | None = None
    ) -> Schema:
        """The document in the best of these media types, by default those of the options."""
        wanted = ExchangeRequest(
            name=document.group_version,
            target=document.target,
            rule=FreshnessRule.HASHED if document.hash else FreshnessRule.REVALIDATED,
            hash=document.hash,
            accepted=accepted or self._accepted,
            check=check_document,
        )
        obtained = await self._open.exchange.obtain(wanted)
        entry = obtained.entry
        return Schema(
            group_version=document.group_version,
            media_type=entry.key.media_type,
            body=entry.body,
            digest=entry.digest,
            hash=entry.key.hash,
            etag=entry.held.etag,
            from_cache=obtained.from_cache,
            stale=obtained.is_stale or root.obtained.is_stale,
            age=self._since(obtained),
            lossy=entry.held.is_lossy,
        )

    def _since(self, obtained: ExchangeResult) -> float:
        """Seconds since the server returned or confirmed it; 0 if the clock was set back since."""
        return max(0.0, self._clock() - obtained.entry.held.received_at)


async def open_cache(
    options: CacheOptions,
    server: Server,
    transport: Callable[[], Transport],
    *,
    partition: Callable[[bytes], str],
    runtime: ClientRuntime[ExchangeResult],
) -> OpenCache:
    """``partition``: computes the partition from the store's secret, unless the options name one."""
    calls = runtime.calls
    directory = None if options.directory is None else Path(options.directory)
    opening = partial(open_store, directory, limits=options.limits, clock=runtime.clock, warn=runtime.warn)
    store, locks, secret = await calls.run(opening)
    entry_store = EntryStore(
        store,
        server=str(server),
        partition=options.partition or partition(secret),
        warn=runtime.warn,
        calls=calls,
    )
    exchange = Exchange(
        server,
        entry_store,
        transport=transport,
        locks=FlightLocks(locks, timeout=options.flight_timeout, calls=calls),
        options=options,
        runtime=runtime,
    )
    catalog = Catalog(server, exchange, options=options, calls=calls, clock=runtime.clock)
    return OpenCache(entry_store, exchange, catalog)


async def prefetch_documents(
    names: tuple[str, ...], fetch: Callable[[str], Awaitable[bool]], *, calls: Calls, concurrency: int
) -> PrefetchResult:
    """``fetch`` returns whether a document was already stored. A failure does not stop the others."""
    failed: dict[str, CacheError] = {}
    present: set[str] = set()

    async def look(name: str) -> None:
        try:
            if await fetch(name):
                present.add(name)
        except CacheError as error:
            failed[name] = error

    await calls.each(look, names, concurrency=concurrency)
    return PrefetchResult(
        fetched=tuple(name for name in names if name not in present and name not in failed),
        present=tuple(name for name in names if name in present),
        failed=MappingProxyType(failed),
    )


async def find_stored_documents(
    entry_store: EntryStore, discovery: Discovery, accepted: tuple[str, ...]
) -> frozenset[str]:
    """Group-versions stored with the hash that they have now, found without reading a body."""
    keys = [row.key for row in await entry_store.rows()]
    stored = {(key.group_version, key.hash) for key in keys if key.hash and key.media_type in accepted}
    return frozenset(
        name for name, document in discovery.documents.items() if (name, document.hash) in stored
    )
