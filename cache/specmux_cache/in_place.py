"""SchemaCache for a program that reads and ends: neither event loop nor HTTP library, which take longer to
import than most commands take to run.

The rules are those of ``reading`` and ``exchange``, the same code. Offline nothing is asked, nor imported for
asking.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Final, Self

from specmux_cache.errors import CacheError
from specmux_cache.http.header_fields import Fields
from specmux_cache.http.responses import Answer
from specmux_cache.http.server import Server
from specmux_cache.reading.calls import IN_PLACE, OwnFlights, finished
from specmux_cache.reading.documents import Reading
from specmux_cache.reading.events import EventLog
from specmux_cache.reading.opening import Opened, opened
from specmux_cache.reading.options import CacheOptions
from specmux_cache.reading.results import Paths, Prefetched, Resource, Schema
from specmux_cache.reading.root import Root
from specmux_cache.store.keys import partition_of

if TYPE_CHECKING:  # offline nothing of it is needed
    import ssl

    from specmux_cache.http.blocking_transport import BlockingTransport

CONCURRENCY: Final = 4
"""Documents that are fetched at the same time, as SchemaCache does."""


class InPlaceCache:
    """Use as a context manager; safe to call from any thread while open. Of a server without a proxy.

    What each call does and raises is said at ``AsyncSchemaCache``. What it may use while it asks in the
    background, it asks for at once: a program that ends has no background. Callers that want the same at
    the same time may each ask for it.
    """

    def __init__(
        self,
        server: str,
        options: CacheOptions,
        *,
        headers: Mapping[str, str] = MappingProxyType({}),
        tls: ssl.SSLContext | None = None,
        identity: str = "",
        server_name: str | None = None,
        warn: Callable[[str], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Raises ValueError for a server that is no http(s) URL."""
        self.server = Server.parse(server)
        self._options = options
        self._headers = headers
        self._tls = tls
        self._server_name = server_name
        self._identity = identity
        self._warn = warn
        self._clock = clock
        self._transport = _Lazy(self._asking)
        self._opened: Opened | None = None

    def __enter__(self) -> Self:
        self._opened = finished(
            opened(
                self._options,
                self.server,
                self._transport,
                flights=OwnFlights(),
                calls=IN_PLACE,
                partition=lambda secret: partition_of(self._headers, identity=self._identity, secret=secret),
                events=EventLog(None),
                warn=self._warn,
                clock=self._clock,
            )
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._opened is not None:
            opened, self._opened = self._opened, None
            self._transport.close()
            finished(opened.entry_store.close())

    @property
    def partition(self) -> str:
        """Whose entries are used. While it is open."""
        return self._open.entry_store.partition

    def paths(self, *, refresh: bool = False) -> Paths:
        """The discovery root: group-versions, where their documents lie, their hashes."""
        return finished(self._reading.paths(refresh=refresh))

    def schema(self, group_version: str, *, media: str | None = None) -> Schema:
        """The document as bytes, and what is known of it."""
        return finished(self._reading.schema(group_version, media))

    def resource(self, path: str, *, headers: Mapping[str, str] = MappingProxyType({})) -> Resource:
        """Any GET below /api, /apis or /openapi, by RFC 9111."""
        return finished(self._reading.resource(path, headers))

    def prefetch(self, group_versions: Iterable[str]) -> Prefetched:
        """Fetch what is not stored yet. A document that fails stops no other."""
        root = finished(self._open.catalog.root())
        names = tuple(dict.fromkeys(group_versions))
        missing = () if self._options.offline else self._missing(root, names)
        failed: dict[str, CacheError] = {}

        def fetch(name: str) -> None:
            try:
                finished(self._reading.represented(root, root.document(name)))
            except CacheError as error:
                failed[name] = error

        if len(missing) == 1:
            fetch(missing[0])
        elif missing:
            from concurrent.futures import ThreadPoolExecutor

            with ThreadPoolExecutor(CONCURRENCY) as threads:
                list(threads.map(fetch, missing))
        return Prefetched(
            fetched=tuple(name for name in missing if name not in failed),
            present=tuple(name for name in names if name not in missing),
            failed=MappingProxyType(failed),
        )

    def _missing(self, root: Root, names: tuple[str, ...]) -> tuple[str, ...]:
        """Those that are not stored with the hash that they have now, told without reading a body."""
        rows = finished(self._open.entry_store.rows())
        stored = {(row.key.group_version, row.key.hash) for row in rows if row.key.hash}
        hashes = {key: document.hash for key, document in root.discovery.documents.items()}
        return tuple(name for name in names if (name, hashes.get(name, "")) not in stored)

    def _asking(self) -> BlockingTransport:
        from specmux_cache.http.blocking_transport import BlockingTransport

        return BlockingTransport(
            self.server,
            headers=self._headers,
            tls=self._tls,
            server_name=self._server_name,
            connect_timeout=self._options.connect_timeout,
            timeout=self._options.timeout,
            max_body_bytes=self._options.limits.max_body_bytes,
            clock=self._clock,
        )

    @property
    def _reading(self) -> Reading:
        return Reading(self.server, self._open, options=self._options, clock=self._clock)

    @property
    def _open(self) -> Opened:
        if self._opened is None:
            raise RuntimeError("the cache is not open: use it as a context manager")
        return self._opened


class _Lazy:
    """The transport, made for the first question."""

    def __init__(self, make: Callable[[], BlockingTransport]) -> None:
        self._make = make
        self._transport: BlockingTransport | None = None

    async def get(self, url: str, fields: Fields) -> Answer:
        if self._transport is None:
            self._transport = self._make()
        return await self._transport.get(url, fields)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
