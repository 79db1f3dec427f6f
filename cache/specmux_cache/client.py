"""AsyncSchemaCache: the OpenAPI documents of one server, kept on disk.

The client opens and closes; what it reads and what that means to a caller is said in ``reading``.
"""

from __future__ import annotations

import os
import time
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from dataclasses import replace
from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, Unpack

from specmux_cache.access.server_access import AccessArguments, ClientAccess, check_fields
from specmux_cache.errors import (
    BadAnswer,
    GroupVersionNotFound,
    KindNotFound,
    RequestError,
    StoreError,
    UnexpectedStatus,
)
from specmux_cache.http.media_types import CBOR, JSON, Refusals, accepted_for
from specmux_cache.http.server import Server
from specmux_cache.reading.client_runtime import IN_THREADS, Calls, Flights
from specmux_cache.reading.decoding import read_document
from specmux_cache.reading.documents import (
    NOT_OPEN,
    OpenCache,
    ServerDocuments,
    find_stored_documents,
    open_cache,
    prefetch_documents,
)
from specmux_cache.reading.fetch import ClientRuntime, EventLog, ExchangeResult
from specmux_cache.reading.options import CacheOptions
from specmux_cache.reading.results import (
    CacheStats,
    Event,
    MediaTypes,
    MergedDocument,
    PrefetchResult,
    Publication,
    Schema,
)
from specmux_cache.store.keys import partition_of
from specmux_converters.memory import ByteBounded

if TYPE_CHECKING:  # a client that is offline needs nothing of them
    from concurrent.futures import ThreadPoolExecutor

    from specmux_cache.http.transport import Transport
    from specmux_cache.reading.resources import KindResource
    from specmux_cache.store.compaction import CompactionReport
    from specmux_converters.resources import GroupVersionKind

IS_OPEN: Final = "the cache is open already: it is closed before it is opened again"
CONNECTIONS_MAX: Final = 16
"""Requests of a client at the same time; each has a connection, and a thread."""
WAIT_FIRST: Final = 0.2
"""Seconds before ``wait_for`` asks again; doubled each time."""
WAIT_MAX: Final = 2.0


class ServerClient:
    """The common part of the clients of one server."""

    @classmethod
    def from_kubeconfig(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        context: str | None = None,
        options: CacheOptions | None = None,
        **more: Any,
    ) -> Self:
        """Create a client from a kubeconfig context, found as kubectl finds it: $KUBECONFIG, else
        ~/.kube/config, and the current context. ``more``: other arguments of the class.

        Entries belong to the context, so they survive a new token. Blocks: reads files, and may run the
        program that prints credentials. Raises KubeconfigError.
        """
        # Here and below: what a call alone needs is imported with it, for each takes as long as a request.
        from specmux_cache.access.presentation import read_access

        access = read_access(None if path is None else Path(path), context=context, environ=os.environ)
        make: Callable[..., Self] = cls
        return make(access.url, options, **access.arguments, **more)

    def __dir__(self) -> list[str]:
        return sorted(name for name in super().__dir__() if not name.startswith("_"))


class AsyncSchemaCache(ServerClient, ServerDocuments):
    """A client of one server, for one event loop; an asynchronous context manager. Calls may run at the same
    time.

    Every call may raise RequestError if the server returned nothing usable and no stored answer may replace
    it, and NotCached when offline. An unusable store is no error: the client warns and uses memory.
    """

    def __init__(
        self,
        server: str,
        options: CacheOptions | None = None,
        *,
        on_event: Callable[[Event], None] | None = None,
        warn: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.time,
        timeout: float | None = None,
        offline: bool | None = None,
        **access: Unpack[AccessArguments],
    ) -> None:
        """``server``: an http(s) URL, with a base path if it has one. ``timeout`` (seconds for a complete
        answer) and ``offline`` override the options. ``on_event`` runs on the event loop and must not block.

        ``access``: ``headers`` go with every request and are never stored. ``identity`` names the holder of
        the client certificate in ``tls``; it and the headers select the partition of the cache, unless
        ``partition`` does. ``proxy``: an http(s) URL. ``server_name``: the name in the server's certificate,
        if it differs from the URL's host. Raises ValueError for another URL and for an invalid header field.
        """
        self.server = Server.parse(server)
        self._access = ClientAccess(url=server, **access)
        self.options = options or CacheOptions()
        if self.options.partition is None:
            self.options = replace(self.options, partition=self._access.partition)
        if timeout is not None:
            self.options = replace(self.options, timeout=timeout)
        if offline is not None:
            self.options = replace(self.options, offline=offline)
        self._accepted = self.options.accepted
        self._headers = check_fields(self._access.headers)
        if warn is None:
            from specmux_cache.log import logger

            warn = logger.warning
        self._warn = warn
        self._clock = clock
        self._events = EventLog(on_event)
        self._decoded: ByteBounded[str, Mapping[str, Any]] = ByteBounded(
            self.options.decoded_max, size=lambda _: 1
        )
        """Decoded documents by digest, ``CacheOptions.decoded_max`` of them."""
        self._cbor = Refusals(self.options.refusal_ttl, clock=clock)
        """Requests that answered 415 to CBOR: verbs of kinds, or all, which is "". client-go has only the
        latter, for the life of its client; KEP-4222 asks for the former."""
        self._opened: OpenCache | None = None

    # What is asked and done with, which a client without an event loop does by other means. Imported with the
    # call: asyncio takes longer than most programs that read one document.

    _calls: Calls = IN_THREADS

    def _flights(self) -> Flights[ExchangeResult]:
        from specmux_cache.reading.single_flight import SingleFlight

        return SingleFlight()

    def _threads(self) -> ThreadPoolExecutor | None:
        """The threads of requests; None: requests run in place."""
        from concurrent.futures import ThreadPoolExecutor

        return ThreadPoolExecutor(CONNECTIONS_MAX, "specmux-cache-request")

    @cached_property
    def _transport(self) -> Transport:
        """Made for the first request; gone when the client is closed."""
        from specmux_cache.http.transport import Transport

        return Transport(
            self.server,
            headers=self._headers,
            tls=self._access.tls,
            server_name=self._access.server_name,
            proxy=self._access.proxy,
            connect_timeout=self.options.connect_timeout,
            timeout=self.options.timeout,
            max_body_bytes=self.options.limits.max_body_bytes,
            clock=self._clock,
            threads=self._threads(),
        )

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.server}, {'closed' if self._opened is None else 'open'}>"

    @property
    def partition(self) -> str:
        """The cache partition of this client's credentials, or the options'. Available while it is open."""
        return self._open.entry_store.partition

    async def open(self) -> Self:
        """Open without ``async with``; ``close`` ends it. Raises RuntimeError if it is open."""
        return await self.__aenter__()

    async def close(self) -> None:
        """Cancel running calls and close connections and the store. Does nothing if closed."""
        await self.__aexit__(None, None, None)

    async def __aenter__(self) -> Self:
        if self._opened is not None:
            raise RuntimeError(IS_OPEN)
        self._opened = await open_cache(
            self.options,
            self.server,
            lambda: self._transport,
            partition=lambda secret: partition_of(
                self._headers, identity=self._access.identity, secret=secret
            ),
            runtime=ClientRuntime(self._calls, self._flights(), self._events, self._warn, self._clock),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._opened is None:
            return
        opened, self._opened = self._opened, None
        await opened.exchange.close()
        if (transport := self.__dict__.pop("_transport", None)) is not None:
            await transport.close()
        await opened.entry_store.close()

    async def spec(self, group_version: str) -> Mapping[str, Any]:
        """The decoded document. Read-only: callers share it. Raises GroupVersionNotFound."""
        return await self._decode(await self.schema(group_version))

    async def wait_for(self, group_version: str, *, within: float = 30.0) -> Schema:
        """Wait until the server publishes the document, such as after a CRD was created, and return it.

        Raises GroupVersionNotFound, or the last RequestError, after ``within`` seconds; a request running by
        then has its own ``timeout``.
        """
        deadline, pause = time.monotonic() + within, WAIT_FIRST
        while True:
            try:
                self._open.catalog.forget(group_version)
                await self._open.catalog.root(refresh=True)
                return await self.schema(group_version)
            except (GroupVersionNotFound, RequestError) as error:
                left = deadline - time.monotonic()
                if left <= 0 and isinstance(error, GroupVersionNotFound):
                    raise GroupVersionNotFound(group_version, server=error.server, waited=within) from None
                if left <= 0:
                    raise
            await self._calls.pause(min(pause, left))
            pause = min(2 * pause, WAIT_MAX)

    async def follow(self, *, interval: float = 2.0) -> AsyncGenerator[Publication, None]:
        """Yield the published documents, then each new publication as it happens. Never ends.

        Each hash comes once. A server that streams publications (specmux does) is not polled; the list of
        others is requested every ``interval`` seconds. Failures are retried. Close the generator
        (``contextlib.aclosing``) if it is left early.
        """
        from specmux_cache.reading.following import PATH, Follower

        if self._opened is None:
            raise RuntimeError(NOT_OPEN)
        follower = Follower(
            self._transport,
            self.server.url(PATH),
            hashes=self._hashes,
            warn=self._warn,
            interval=interval,
        )
        async for found in follower.publications():
            yield found

    async def resources(self) -> Mapping[GroupVersionKind, KindResource]:
        """The kinds of the server with plural, scope and verbs, from its aggregated discovery, cached
        like other answers.

        Raises BadAnswer for a server without aggregated discovery (Kubernetes before 1.26), UnexpectedStatus.
        """
        from specmux_cache.reading.resources import HEADERS, PATHS, resources_in

        found: dict[GroupVersionKind, KindResource] = {}
        for path in PATHS:
            answer = await self.resource(path, headers=HEADERS)
            url = f"{self.server}{path}"
            if answer.status != HTTPStatus.OK:
                raise UnexpectedStatus(answer.status, url=url)
            try:
                found |= resources_in(answer.body)
            except ValueError as error:
                raise BadAnswer(str(error), url=url) from error
        return found

    async def supports(
        self, group_version: str, kind: str, parameter: str = "fieldValidation", *, is_custom: bool = False
    ) -> bool:
        """Return whether PATCH of this kind accepts this query parameter, by kubectl's rule for
        ``fieldValidation``.

        ``is_custom``: a CustomResourceDefinition declares the kind. Its document may not be published yet;
        then Namespace answers for it. Raises GroupVersionNotFound and KindNotFound.
        """
        from specmux_cache.reading.query_parameters import has_kind, takes_parameter

        try:
            document = await self.spec(group_version)
        except GroupVersionNotFound:
            if not is_custom:
                raise
            return takes_parameter(await self.spec("api/v1"), "api/v1", "Namespace", parameter)
        if not has_kind(document, group_version, kind):
            raise KindNotFound(kind, group_version=group_version)
        return takes_parameter(document, group_version, kind, parameter)

    async def media_types(self, group_version: str, kind: str, verb: str) -> MediaTypes:
        """The media types of an operation, as its document states them. ``verb``: create, update, patch, get,
        list, watch, delete or deletecollection. Raises GroupVersionNotFound; KindNotFound without such an
        operation.
        """
        from specmux_cache.reading.query_parameters import media_types_of

        found = media_types_of(await self.spec(group_version), group_version, kind, verb)
        if found is None:
            raise KindNotFound(kind, group_version=group_version)
        return found

    async def media_type_to_send(self, group_version: str, kind: str, verb: str) -> str:
        """CBOR if the options prefer it, the document does not exclude it and ``note_unsupported`` did not
        record a refusal; else JSON. Patches have types of their own: choose from ``media_types``. Raises what
        ``media_types`` raises."""
        if self.options.accepted[0] != CBOR:
            return JSON
        from specmux_cache.reading.query_parameters import request_name

        stated = await self.media_types(group_version, kind, verb)
        names = "", request_name(group_version, kind, verb)
        is_taken = all(self._cbor.list_supported(name, (CBOR,)) for name in names)
        return CBOR if is_taken and stated.may_take(CBOR) else JSON

    def note_unsupported(self, group_version: str = "", kind: str = "", verb: str = "") -> None:
        """Record that the server rejected CBOR (415), for one verb of a kind or, without arguments, for all.
        Expires after ``CacheOptions.refusal_ttl``."""
        from specmux_cache.reading.query_parameters import request_name

        self._cbor.note(request_name(group_version, kind, verb) if group_version else "", (CBOR,))

    async def prefetch(
        self,
        group_versions: Iterable[str] | None = None,
        *,
        media: str | None = None,
        concurrency: int = 4,
    ) -> PrefetchResult:
        """Fetch the documents that are not stored yet, by default all. A failure does not stop the others and
        is part of the result. ``media``: see ``schema``. ``concurrency``: requests at a time, at most 16."""
        root = await self._open.catalog.root()
        names = root.discovery.documents if group_versions is None else group_versions
        accepted = self.options.accepted if media is None else accepted_for(media)
        stored = await find_stored_documents(self._open.entry_store, root.discovery, accepted)

        async def fetch(name: str) -> bool:
            document = root.document(name)
            return name in stored or (await self._represent(root, document, accepted)).from_cache

        wanted = tuple(dict.fromkeys(names))
        return await prefetch_documents(wanted, fetch, calls=self._calls, concurrency=concurrency)

    async def merge(self, group_versions: Iterable[str] | None = None) -> MergedDocument:
        """Merge these group-versions, by default all, into one OpenAPI document. Raises GroupVersionNotFound
        and MergeRefused."""
        from specmux_cache.reading.merging import merge_documents

        root = await self._open.catalog.root()
        names = root.discovery.documents if group_versions is None else group_versions
        schemas = [await self._represent(root, root.document(name)) for name in names]
        specs = {schema.group_version: await self._decode(schema) for schema in schemas}
        return await self._calls.run(merge_documents, specs)

    async def invalidate(self, group_version: str | None = None) -> int:
        """Remove a group-version's entries, or all entries of this server in this partition. Returns the
        number removed."""
        from specmux_cache.reading.query_parameters import group_and_version

        entry_store = self._open.entry_store
        self._open.catalog.forget()
        self._decoded.clear()
        rows = await entry_store.rows()
        doomed = [
            row.key
            for row in rows
            if group_version is None
            or group_and_version(row.key.group_version) == group_and_version(group_version)
        ]
        return await entry_store.delete(doomed)

    async def compact(
        self, *, max_bytes: int | None = None, max_age: float | None = None, dry_run: bool = False
    ) -> CompactionReport:
        """Shrink the directory now, for all clients that share it; see ``DiskStore.compact``. Raises
        StoreError."""
        from specmux_cache.store.compaction import CompactionReport

        entry_store = self._open.entry_store
        return await entry_store.on_disk(
            lambda store: store.compact(max_bytes=max_bytes, max_age=max_age, dry_run=dry_run),
            CompactionReport(dry_run=dry_run),
        )

    async def stats(self) -> CacheStats:
        """Counters since this client was created, and the state of its directory."""
        entry_store = self._open.entry_store
        try:
            store = await entry_store.on_disk(lambda disk: disk.stats(), None)
        except StoreError:
            store = None
        return CacheStats(self._events.counts(), self._events.bytes_fetched, len(self._decoded), store)

    async def export(self, path: str | os.PathLike[str]) -> int:
        """Write the current entries of this server into a bundle file. Returns their number. Raises
        BundleError."""
        from specmux_cache.reading.bundle import export_bundle

        return await export_bundle(Path(path), str(self.server), self._open.entry_store)

    async def import_(self, path: str | os.PathLike[str]) -> int:
        """Store the entries of a bundle as this server's, wherever it was exported. Returns their number.
        Raises BundleError."""
        from specmux_cache.reading.bundle import import_bundle

        stored = await import_bundle(Path(path), self._open.entry_store, limits=self.options.limits)
        self._open.catalog.forget()
        return stored

    async def _hashes(self) -> dict[str, str]:
        paths = await self.paths(refresh=True)
        return {key: document.hash for key, document in paths.documents.items()}

    async def _decode(self, schema: Schema) -> Mapping[str, Any]:
        found = self._decoded.get(schema.digest)
        if found is not None:
            return found
        document = await self._calls.run(read_document, schema.body, schema.media_type)
        self._decoded.put(schema.digest, document)
        return document
