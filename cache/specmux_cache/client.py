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

from specmux_cache.access.field_values import checked_fields
from specmux_cache.access.server_access import AccessArguments, ClientAccess
from specmux_cache.errors import (
    BadAnswer,
    GroupVersionNotFound,
    KindNotFound,
    RequestError,
    StoreError,
    UnexpectedStatus,
)
from specmux_cache.http.media_types import CBOR, JSON, accepted_for
from specmux_cache.http.server import Server
from specmux_cache.reading.client_runtime import IN_THREADS, Calls, ClientRuntime, Event, EventLog, Flights
from specmux_cache.reading.decoding import read_document
from specmux_cache.reading.documents import NOT_OPEN, OpenCache, ServerDocuments
from specmux_cache.reading.opening import opened
from specmux_cache.reading.options import CacheOptions
from specmux_cache.reading.results import (
    CacheStats,
    MediaTypes,
    MergedDocument,
    PrefetchResult,
    Publication,
    Schema,
)
from specmux_cache.store.keys import partition_of

if TYPE_CHECKING:  # a client that is offline needs nothing of them
    from concurrent.futures import ThreadPoolExecutor

    from specmux_cache.http.transport import Transport
    from specmux_cache.http.unsupported_media_types import UnsupportedRequests
    from specmux_cache.reading.fetch import ExchangeResult
    from specmux_cache.reading.resources import KindResource
    from specmux_cache.store.compaction import CompactionReport
    from specmux_converters.byte_bounded import ByteBounded
    from specmux_converters.resources import GroupVersionKind

IS_OPEN: Final = "the cache is open already: it is closed before it is opened again"
CONNECTIONS_MAX: Final = 16
"""Requests of a client at the same time; each has a connection, and a thread."""
WAIT_FIRST: Final = 0.2
"""Seconds before ``wait_for`` asks again; doubled each time."""
WAIT_MAX: Final = 2.0


class ServerClient:
    """What clients of one server have in common."""

    @classmethod
    def from_kubeconfig(
        cls,
        path: str | os.PathLike[str] | None = None,
        *,
        context: str | None = None,
        options: CacheOptions | None = None,
        **more: Any,
    ) -> Self:
        """Of the server of a kubeconfig's context, as kubectl finds it: $KUBECONFIG, else ~/.kube/config, and
        the current context. ``more``: as for the class.

        Entries are the context's, so that a token that is exchanged keeps what was stored. Reads files and
        may run the program that prints credentials: it blocks. Raises KubeconfigError.
        """
        # Here and below: what a call alone needs is imported with it, for each takes as long as a request.
        from specmux_cache.kubeconfig import read_access

        access = read_access(None if path is None else Path(path), context=context, environ=os.environ)
        make: Callable[..., Self] = cls
        return make(access.url, options, **access.arguments, **more)

    def __dir__(self) -> list[str]:
        return sorted(name for name in super().__dir__() if not name.startswith("_"))


class AsyncSchemaCache(ServerClient, ServerDocuments):
    """Use as an asynchronous context manager, in one event loop. Calls may run at the same time.

    Raises, beside what each call says: RequestError when the server gave nothing to use and nothing stored
    may stand in, NotCached when offline. A store that cannot be used is no error: see
    ``CacheOptions.directory``.
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
        """``server`` may have a base path. ``timeout``: seconds for a whole answer, and ``offline``: whether
        no server is asked; both in place of the options'.

        ``access``: ``headers`` go with every request and are never stored. ``identity`` names who a client
        certificate in ``tls`` is for: it and the headers decide whose entries are used, unless there is a
        ``partition``. ``proxy`` is an http(s) URL; ``server_name`` what the certificate has to name where
        that is not the URL's host. Raises ValueError for a server that is no http(s) URL, and for a header
        field that HTTP has no form for.
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
        self._headers = checked_fields(self._access.headers)
        if warn is None:
            from specmux_cache.log import logger

            warn = logger.warning
        self._warn = warn
        self._clock = clock
        self._events = EventLog(on_event)
        self._opened: OpenCache | None = None

    @cached_property
    def _unsupported(self) -> UnsupportedRequests:
        from specmux_cache.http.unsupported_media_types import UnsupportedRequests

        return UnsupportedRequests(self.options.refusal_ttl, clock=self._clock)

    @cached_property
    def _decoded(self) -> ByteBounded[str, Mapping[str, Any]]:
        """As many documents as the options say."""
        from specmux_converters.byte_bounded import ByteBounded

        return ByteBounded(self.options.decoded_max, size=lambda _: 1)

    # What is asked and done with, which a client without an event loop does by other means. Imported with the
    # call: asyncio takes longer than most programs that read one document.

    _calls: Calls = IN_THREADS

    def _flights(self) -> Flights[ExchangeResult]:
        from specmux_cache.reading.single_flight import SingleFlight

        return SingleFlight()

    def _threads(self) -> ThreadPoolExecutor | None:
        """Where requests run."""
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
        """Whose entries are used: the name that options give, else one of what is shown. While it is open."""
        return self._open.entry_store.partition

    async def open(self) -> Self:
        """For use without ``async with``; ``close`` ends it."""
        return await self.__aenter__()

    async def close(self) -> None:
        """Finishes what runs, and lets go of connections and the store. Again does nothing."""
        await self.__aexit__(None, None, None)

    async def __aenter__(self) -> Self:
        if self._opened is not None:
            raise RuntimeError(IS_OPEN)
        self._opened = await opened(
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
        """The document decoded; read-only, for all callers share it. Raises GroupVersionNotFound."""
        return await self._decode(await self.schema(group_version))

    async def wait_for(self, group_version: str, *, within: float = 30.0) -> Schema:
        """The document as soon as the server publishes it, such as after a CRD was created.

        Raises GroupVersionNotFound, or the server's last failure, after ``within`` seconds; a request that is
        under way by then has its own ``timeout``.
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
        """What the server publishes now, and then whatever is published, as soon as it is; for ever.

        Each hash comes once. Without polling where the server streams publications (specmux does); others
        are asked for their list every ``interval`` seconds. A server that does not answer is asked until it
        does. Close the generator (``contextlib.aclosing``) when it is left before its end.
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
        """The kinds of the server and how they are served: plural, scope, verbs; from its aggregated
        discovery, stored as other answers.

        Raises BadAnswer for a server without aggregated discovery (Kubernetes before 1.26).
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
        """Whether PATCH of this kind takes this query parameter; kubectl asks so for ``fieldValidation``.

        ``is_custom``: of a kind that a CustomResourceDefinition declares, whose document may not be there
        yet, a Namespace answers in its place. Raises GroupVersionNotFound and KindNotFound for what is not
        there.
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
        """What a verb of a kind takes and gives, as the document states it: create, update, patch, get, list,
        watch, delete, deletecollection. Raises GroupVersionNotFound; KindNotFound without such an operation.
        """
        from specmux_cache.reading.query_parameters import media_types_of

        found = media_types_of(await self.spec(group_version), group_version, kind, verb)
        if found is None:
            raise KindNotFound(kind, group_version=group_version)
        return found

    async def media_type_to_send(self, group_version: str, kind: str, verb: str) -> str:
        """CBOR where it is preferred, its document does not say otherwise and ``note_unsupported`` was not
        told of it; else JSON. A patch has types of its own: choose by ``media_types``. Raises as that."""
        if self.options.accepted[0] != CBOR:
            return JSON
        from specmux_cache.reading.query_parameters import request_name

        stated = await self.media_types(group_version, kind, verb)
        is_taken = self._unsupported.takes(request_name(group_version, kind, verb))
        return CBOR if is_taken and stated.may_take(CBOR) else JSON

    def note_unsupported(self, group_version: str = "", kind: str = "", verb: str = "") -> None:
        """That the server answered 415 to CBOR: for this verb of this kind; without them for all. Forgotten
        after ``CacheOptions.refusal_ttl``."""
        from specmux_cache.reading.query_parameters import request_name

        self._unsupported.note(request_name(group_version, kind, verb) if group_version else "")

    async def prefetch(
        self,
        group_versions: Iterable[str] | None = None,
        *,
        media: str | None = None,
        concurrency: int = 4,
    ) -> PrefetchResult:
        """Fetch what is not stored yet; all of the root by default. A document that fails stops no other.
        ``media``: as for ``schema``."""
        from specmux_cache.reading.prefetching import prefetch_documents, stored_documents

        root = await self._open.catalog.root()
        names = root.discovery.documents if group_versions is None else group_versions
        accepted = self.options.accepted if media is None else accepted_for(media)
        stored = await stored_documents(self._open.entry_store, root.discovery, accepted)

        async def fetch(name: str) -> bool:
            document = root.document(name)
            return name in stored or (await self._represented(root, document, accepted)).from_cache

        wanted = tuple(dict.fromkeys(names))
        return await prefetch_documents(wanted, fetch, calls=self._calls, concurrency=concurrency)

    async def merge(self, group_versions: Iterable[str] | None = None) -> MergedDocument:
        """These group-versions, or all of the root, as one OpenAPI document. Raises GroupVersionNotFound."""
        from specmux_cache.reading.merging import merge_documents

        root = await self._open.catalog.root()
        names = root.discovery.documents if group_versions is None else group_versions
        schemas = [await self._represented(root, root.document(name)) for name in names]
        specs = {schema.group_version: await self._decode(schema) for schema in schemas}
        return await self._calls.run(merge_documents, specs)

    async def invalidate(self, group_version: str | None = None) -> int:
        """Forget a group-version, or all of this server's in this partition; how many entries went."""
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
        """Shrink the directory, of all clients that share it, as ``DiskStore.compact``. Raises StoreError."""
        from specmux_cache.store.compaction import CompactionReport

        entry_store = self._open.entry_store
        return await entry_store.on_disk(
            lambda store: store.compact(max_bytes=max_bytes, max_age=max_age, dry_run=dry_run),
            CompactionReport(dry_run=dry_run),
        )

    async def stats(self) -> CacheStats:
        """What this client did since it was made, and how its directory is."""
        entry_store = self._open.entry_store
        try:
            store = await entry_store.on_disk(lambda disk: disk.stats(), None)
        except StoreError:
            store = None
        return CacheStats(self._events.counts(), self._events.bytes_fetched, len(self._decoded), store)

    async def export(self, path: str | os.PathLike[str]) -> int:
        """Write what is current of this server into a bundle; how many entries. Raises BundleError."""
        from specmux_cache.reading.bundle import export_bundle

        return await export_bundle(Path(path), str(self.server), self._open.entry_store)

    async def import_(self, path: str | os.PathLike[str]) -> int:
        """Store a bundle as this server's, wherever it is from; how many entries. Raises BundleError."""
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
