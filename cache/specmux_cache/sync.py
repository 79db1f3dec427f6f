"""SchemaCache: AsyncSchemaCache for programs without an event loop. The same calls, blocking.

With a background, an event loop of its own runs in a thread, so that single flight and what is asked for
behind a caller's back are the same code. Without one neither it nor the HTTP library is imported, which takes
longer than most commands take to run: the same coroutines wait for nothing but calls in place.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Hashable, Iterator, Sequence
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, Final, ParamSpec, Self, TypeVar, Unpack

from specmux_cache.access.server_access import AccessArguments
from specmux_cache.client import IS_OPEN, AsyncSchemaCache, ServerClient
from specmux_cache.http.server import Server
from specmux_cache.reading.documents import NOT_OPEN
from specmux_cache.reading.options import CacheOptions
from specmux_cache.reading.results import Event, Publication

P = ParamSpec("P")
T = TypeVar("T")


def _blocking(
    call: Callable[Concatenate[AsyncSchemaCache, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SchemaCache, P], T]:
    """The call of this name, which returns once the coroutine has."""

    @wraps(call)
    def blocking(self: SchemaCache, /, *args: P.args, **kwargs: P.kwargs) -> T:
        waiting: Coroutine[Any, Any, T] = getattr(self._cache, call.__name__)(*args, **kwargs)
        return self._run(waiting)

    return blocking


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

    paths = _blocking(AsyncSchemaCache.paths)
    schema = _blocking(AsyncSchemaCache.schema)
    spec = _blocking(AsyncSchemaCache.spec)
    wait_for = _blocking(AsyncSchemaCache.wait_for)
    resources = _blocking(AsyncSchemaCache.resources)
    supports = _blocking(AsyncSchemaCache.supports)
    media_types = _blocking(AsyncSchemaCache.media_types)
    media_type_to_send = _blocking(AsyncSchemaCache.media_type_to_send)
    prefetch = _blocking(AsyncSchemaCache.prefetch)
    merge = _blocking(AsyncSchemaCache.merge)
    resource = _blocking(AsyncSchemaCache.resource)
    invalidate = _blocking(AsyncSchemaCache.invalidate)
    compact = _blocking(AsyncSchemaCache.compact)
    stats = _blocking(AsyncSchemaCache.stats)
    export = _blocking(AsyncSchemaCache.export)
    import_ = _blocking(AsyncSchemaCache.import_)

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

    def note_unsupported(self, group_version: str = "", kind: str = "", verb: str = "") -> None:
        """Record that the server rejected CBOR (415), for one verb of a kind or, without arguments, for
        all."""
        self._cache.note_unsupported(group_version, kind, verb)

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
