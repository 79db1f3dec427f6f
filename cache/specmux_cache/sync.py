"""SchemaCache: AsyncSchemaCache for programs without an event loop. The same calls, blocking.

An event loop of its own runs in a thread, so that single flight and work in the background are the same code.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from specmux_cache.client import NOT_OPEN, AsyncSchemaCache
from specmux_cache.http.server import Server
from specmux_cache.reading.events import CacheStats, Event
from specmux_cache.reading.following import Publication
from specmux_cache.reading.options import CacheOptions
from specmux_cache.reading.results import Merged, Paths, Prefetched, Resource, Schema
from specmux_cache.store.compaction import CompactionReport

T = TypeVar("T")


class SchemaCache:
    """Use as a context manager; safe to call from any thread while open. Not across a fork.

    What each call does and raises is said at ``AsyncSchemaCache``. ``on_event`` and ``warn`` are called in
    the cache's own thread.
    """

    def __init__(
        self,
        server: str,
        options: CacheOptions | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        tls: ssl.SSLContext | None = None,
        identity: str = "",
        proxy: str | None = None,
        server_name: str | None = None,
        on_event: Callable[[Event], None] | None = None,
        warn: Callable[[str], None] | None = None,
    ) -> None:
        hooks: dict[str, Any] = {} if warn is None else {"warn": warn}
        self._cache = AsyncSchemaCache(
            server,
            options,
            headers=headers or {},
            tls=tls,
            identity=identity,
            proxy=proxy,
            server_name=server_name,
            on_event=on_event,
            **hooks,
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @classmethod
    def from_kubeconfig(
        cls,
        path: Path | None = None,
        *,
        context: str | None = None,
        options: CacheOptions | None = None,
        **more: Any,
    ) -> Self:
        """Of the server of a kubeconfig's context, as kubectl finds it: $KUBECONFIG, else ~/.kube/config, and
        the current context. ``more``: as for the class. Raises KubeconfigError."""
        from specmux_cache.kubeconfig import client_arguments

        url, made, named = client_arguments(path, context=context, options=options)
        return cls(url, made, **named, **more)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.server}, {'closed' if self._loop is None else 'open'}>"

    def __dir__(self) -> list[str]:
        return sorted(name for name in super().__dir__() if not name.startswith("_"))

    def open(self) -> Self:
        """For use without ``with``; ``close`` ends it."""
        return self.__enter__()

    def close(self) -> None:
        """Finishes what runs, and lets go of connections and the store. Again does nothing."""
        if self._loop is not None:
            self.__exit__(None, None, None)

    def __enter__(self) -> Self:
        loop = asyncio.new_event_loop()
        self._loop = loop
        self._thread = threading.Thread(target=loop.run_forever, name="specmux-cache", daemon=True)
        self._thread.start()
        try:
            self._run(self._cache.__aenter__())
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._run(self._cache.__aexit__(kind, error, trace))
        finally:
            self._stop()

    @property
    def server(self) -> Server:
        """Where it is; ``str`` gives its URL."""
        return self._cache.server

    @property
    def partition(self) -> str:
        """Whose entries are used. While it is open."""
        return self._cache.partition

    def paths(self, *, refresh: bool = False) -> Paths:
        """The discovery root: group-versions, where their documents lie, their hashes."""
        return self._run(self._cache.paths(refresh=refresh))

    def schema(self, group_version: str, *, media: str | None = None) -> Schema:
        """The document as bytes, and what is known of it."""
        return self._run(self._cache.schema(group_version, media=media))

    def spec(self, group_version: str) -> Mapping[str, Any]:
        """The document decoded; read-only, for all callers share it."""
        return self._run(self._cache.spec(group_version))

    def wait_for(self, group_version: str, *, within: float = 30.0) -> Schema:
        """The document as soon as the server publishes it, such as after a CRD was created."""
        return self._run(self._cache.wait_for(group_version, within=within))

    def follow(self, *, interval: float = 2.0) -> Iterator[Publication]:
        """Blocks until something is published."""
        publications = self._cache.follow(interval=interval)
        try:
            while True:
                yield self._run(_next(publications))
        finally:
            self._run(publications.aclose())

    def supports(
        self, group_version: str, kind: str, parameter: str = "fieldValidation", *, is_custom: bool = False
    ) -> bool:
        """Whether PATCH of this kind takes this query parameter, by kubectl's rule. Raises KindNotFound."""
        return self._run(self._cache.supports(group_version, kind, parameter, is_custom=is_custom))

    def prefetch(self, group_versions: Iterable[str] | None = None, *, concurrency: int = 4) -> Prefetched:
        """Fetch what is not stored yet; all of the root by default. A document that fails stops no other."""
        return self._run(self._cache.prefetch(group_versions, concurrency=concurrency))

    def merge(self, group_versions: Iterable[str] | None = None) -> Merged:
        """These group-versions, or all of the root, as one OpenAPI document."""
        return self._run(self._cache.merge(group_versions))

    def resource(self, path: str, *, headers: Mapping[str, str] | None = None) -> Resource:
        """Any GET below /api, /apis or /openapi, by RFC 9111."""
        return self._run(self._cache.resource(path, headers=headers or {}))

    def invalidate(self, group_version: str | None = None) -> int:
        """Forget a group-version, or all of this server's in this partition; how many entries went."""
        return self._run(self._cache.invalidate(group_version))

    def compact(
        self, *, max_bytes: int | None = None, max_age: float | None = None, dry_run: bool = False
    ) -> CompactionReport:
        """Shrink the directory now, of all clients that share it."""
        return self._run(self._cache.compact(max_bytes=max_bytes, max_age=max_age, dry_run=dry_run))

    def stats(self) -> CacheStats:
        """What this client did since it was made, and how its directory is."""
        return self._run(self._cache.stats())

    def export(self, path: Path) -> int:
        """Write what is current of this server into a bundle; how many entries."""
        return self._run(self._cache.export(path))

    def import_(self, path: Path) -> int:
        """Store a bundle as this server's, wherever it is from; how many entries."""
        return self._run(self._cache.import_(path))

    def _run(self, call: Coroutine[Any, Any, T]) -> T:
        if self._loop is None:
            call.close()
            raise RuntimeError(NOT_OPEN)
        future = asyncio.run_coroutine_threadsafe(call, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()  # does nothing to a call that has ended; Ctrl-C ends one that has not
            raise

    def _stop(self) -> None:
        loop, self._loop = self._loop, None
        if loop is None or self._thread is None:
            return
        asyncio.run_coroutine_threadsafe(loop.shutdown_default_executor(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join()
        loop.close()


async def _next(values: AsyncIterator[T]) -> T:
    return await anext(values)
