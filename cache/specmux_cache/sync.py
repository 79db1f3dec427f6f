"""SchemaCache: AsyncSchemaCache for programs without an event loop. The same calls, blocking.

With a background, an event loop of its own runs in a thread, so that single flight and what is asked for
behind a caller's back are the same code. Without one neither it nor the HTTP library is imported, which takes
longer than most commands take to run: the same coroutines wait for nothing but calls in place.
"""

from __future__ import annotations

import os
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Hashable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar, Unpack

from specmux_cache.access.server_access import AccessArguments
from specmux_cache.client import IS_OPEN, AsyncSchemaCache, ServerClient
from specmux_cache.http.server import Server
from specmux_cache.reading.documents import NOT_OPEN
from specmux_cache.reading.options import CacheOptions
from specmux_cache.reading.results import (
    CacheStats,
    Event,
    MediaTypes,
    MergedDocument,
    Paths,
    PrefetchResult,
    Publication,
    Resource,
    Schema,
)

if TYPE_CHECKING:  # what a client without a background does not need, or not before it asks
    from specmux_cache.reading.resources import KindResource
    from specmux_cache.store.compaction import CompactionReport
    from specmux_converters.resources import GroupVersionKind

T = TypeVar("T")

CONCURRENCY: Final = 4
"""Documents that are fetched ahead at the same time."""


class SchemaCache(ServerClient):
    """A blocking client of one server; a context manager. Safe to call from any thread while open, not across
    a fork.

    ``AsyncSchemaCache`` describes what each call does and raises. ``on_event`` and ``warn`` run in the
    cache's own thread.

    ``background=False`` suits a program that reads and ends: it starts in a third of the time. Then stale
    answers are revalidated before they are returned, concurrent calls for the same document may each fetch
    it, and ``follow`` raises RuntimeError.
    """

    def __init__(
        self,
        server: str,
        options: CacheOptions | None = None,
        *,
        on_event: Callable[[Event], None] | None = None,
        warn: Callable[[str], None] | None = None,
        clock: Callable[[], float] = time.time,
        background: bool = True,
        timeout: float | None = None,
        offline: bool | None = None,
        **access: Unpack[AccessArguments],
    ) -> None:
        """See AsyncSchemaCache."""
        self._has_background = background
        kind = AsyncSchemaCache if background else _InPlace
        self._cache = kind(
            server,
            options,
            on_event=on_event,
            warn=warn,
            clock=clock,
            timeout=timeout,
            offline=offline,
            **access,
        )
        self._thread: LoopThread | None = None

    def __repr__(self) -> str:
        return repr(self._cache).replace(type(self._cache).__name__, type(self).__name__, 1)

    def open(self) -> Self:
        """Open without ``with``; ``close`` ends it. Raises RuntimeError if it is open."""
        return self.__enter__()

    def close(self) -> None:
        """Cancel running calls and close connections and the store. Does nothing if closed."""
        self.__exit__(None, None, None)

    def __enter__(self) -> Self:
        if self._thread is not None:
            raise RuntimeError(IS_OPEN)
        if self._has_background:
            self._thread = LoopThread()
        try:
            self._run(self._cache.__aenter__())
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._has_background and self._thread is None:
            return
        try:
            self._run(self._cache.__aexit__(kind, error, trace))
        finally:
            self._stop()

    @property
    def server(self) -> Server:
        """The server. ``str(server)`` is its URL."""
        return self._cache.server

    @property
    def partition(self) -> str:
        """The cache partition of this client's credentials. Available while the client is open."""
        return self._cache.partition

    def paths(self, *, refresh: bool = False) -> Paths:
        """The discovery root: group-versions with the URLs and hashes of their documents. ``refresh`` asks
        the server even within ``root_ttl``."""
        return self._run(self._cache.paths(refresh=refresh))

    def schema(self, group_version: str, *, media: str | None = None) -> Schema:
        """The document as bytes, with its media type, hash and age. Raises GroupVersionNotFound."""
        return self._run(self._cache.schema(group_version, media=media))

    def spec(self, group_version: str) -> Mapping[str, Any]:
        """The decoded document. Read-only: callers share it. Raises GroupVersionNotFound."""
        return self._run(self._cache.spec(group_version))

    def wait_for(self, group_version: str, *, within: float = 30.0) -> Schema:
        """Wait until the server publishes the document, such as after a CRD was created, and return it.
        Raises GroupVersionNotFound after ``within`` seconds."""
        return self._run(self._cache.wait_for(group_version, within=within))

    def follow(self, *, interval: float = 2.0) -> Iterator[Publication]:
        """Yield each publication, blocking until the next. Raises RuntimeError with ``background=False``."""
        if not self._has_background:
            raise RuntimeError("follow() needs background=True")
        publications = self._cache.follow(interval=interval)
        try:
            while True:
                yield self._run(_next(publications))
        finally:
            self._run(publications.aclose())

    def resources(self) -> Mapping[GroupVersionKind, KindResource]:
        """The kinds of the server with plural, scope and verbs. Raises BadAnswer without aggregated
        discovery."""
        return self._run(self._cache.resources())

    def supports(
        self, group_version: str, kind: str, parameter: str = "fieldValidation", *, is_custom: bool = False
    ) -> bool:
        """Return whether PATCH of this kind accepts this query parameter. Raises KindNotFound."""
        return self._run(self._cache.supports(group_version, kind, parameter, is_custom=is_custom))

    def media_types(self, group_version: str, kind: str, verb: str) -> MediaTypes:
        """The media types of an operation, as its document states them. Raises KindNotFound."""
        return self._run(self._cache.media_types(group_version, kind, verb))

    def media_type_to_send(self, group_version: str, kind: str, verb: str) -> str:
        """CBOR if preferred, stated and not recorded as unsupported; else JSON. Raises KindNotFound."""
        return self._run(self._cache.media_type_to_send(group_version, kind, verb))

    def note_unsupported(self, group_version: str = "", kind: str = "", verb: str = "") -> None:
        """Record that the server rejected CBOR (415), for one verb of a kind or, without arguments, for
        all."""
        self._cache.note_unsupported(group_version, kind, verb)

    def prefetch(
        self,
        group_versions: Iterable[str] | None = None,
        *,
        media: str | None = None,
        concurrency: int = CONCURRENCY,
    ) -> PrefetchResult:
        """Fetch the documents that are not stored yet, by default all. A failure does not stop the others."""
        return self._run(self._cache.prefetch(group_versions, media=media, concurrency=concurrency))

    def merge(self, group_versions: Iterable[str] | None = None) -> MergedDocument:
        """Merge these group-versions, by default all, into one OpenAPI document."""
        return self._run(self._cache.merge(group_versions))

    def resource(self, path: str, *, headers: Mapping[str, str] | None = None) -> Resource:
        """GET any path below /api, /apis or /openapi, cached by RFC 9111. Any status is a result; raises
        ValueError for another path and for credentials in ``headers``."""
        return self._run(self._cache.resource(path, headers=headers or {}))

    def invalidate(self, group_version: str | None = None) -> int:
        """Remove a group-version's entries, or all entries of this server. Returns the number removed."""
        return self._run(self._cache.invalidate(group_version))

    def compact(
        self, *, max_bytes: int | None = None, max_age: float | None = None, dry_run: bool = False
    ) -> CompactionReport:
        """Shrink the directory now, for all clients that share it. Raises StoreError."""
        return self._run(self._cache.compact(max_bytes=max_bytes, max_age=max_age, dry_run=dry_run))

    def stats(self) -> CacheStats:
        """Counters since this client was created, and the state of its directory."""
        return self._run(self._cache.stats())

    def export(self, path: str | os.PathLike[str]) -> int:
        """Write the current entries of this server into a bundle file. Returns their number."""
        return self._run(self._cache.export(path))

    def import_(self, path: str | os.PathLike[str]) -> int:
        """Store the entries of a bundle as this server's. Returns their number."""
        return self._run(self._cache.import_(path))

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        if not self._has_background:
            return run_in_place(call)
        if self._thread is None:
            call.close()
            raise RuntimeError(NOT_OPEN)
        return self._thread.run(call)

    def _stop(self) -> None:
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.stop()


async def _next(values: AsyncIterator[T]) -> T:
    return await anext(values)


class LoopThread:
    """An event loop in a thread of its own. Runs from its creation until ``stop``."""

    def __init__(self) -> None:
        import asyncio
        import threading

        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="specmux-cache", daemon=True)
        self._thread.start()

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        """The result of the call, from any thread."""
        from asyncio import run_coroutine_threadsafe

        future = run_coroutine_threadsafe(call, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # no effect on a call that has ended; Ctrl-C cancels a running one
            raise

    def stop(self) -> None:
        self.run(self._loop.shutdown_default_executor())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class InPlace:
    """Blocking calls in the calling thread."""

    async def run(self, work: Callable[..., T], *arguments: Any) -> T:
        return work(*arguments)

    async def pause(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251  # there is no event loop to hold up

    async def each(
        self, work: Callable[[str], Coroutine[Any, Any, None]], names: Sequence[str], *, concurrency: int
    ) -> None:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(concurrency) as threads:
            for run in threads.map(lambda name: run_in_place(work(name)), names):
                assert run is None


class OwnFlights:
    """Each caller has its own run, and waits for it."""

    go_on: Final = False

    async def run(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        return await work()

    def start(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> object:
        raise RuntimeError("nothing runs behind a caller's back here")

    async def close(self) -> None:
        """Nothing is running."""


class _InPlace(AsyncSchemaCache):
    """Its coroutines wait for no event loop."""

    _calls = InPlace()

    def _flights(self) -> OwnFlights:
        return OwnFlights()

    def _threads(self) -> None:
        return None


def run_in_place(call: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that waits only for calls in place."""
    try:
        call.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    call.close()
    raise RuntimeError("it waits for an event loop, and there is none")
