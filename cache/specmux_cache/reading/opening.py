"""Open the parts of a client."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from specmux_cache.http.server import Server
from specmux_cache.reading.client_runtime import ClientRuntime
from specmux_cache.reading.documents import Catalog, OpenCache
from specmux_cache.reading.entry_store import EntryStore
from specmux_cache.reading.fetch import Exchange, ExchangeResult, GetTransport
from specmux_cache.reading.flight_locks import FlightLocks
from specmux_cache.reading.options import CacheOptions
from specmux_cache.store.opening import Store, open_store


async def open_cache(
    options: CacheOptions,
    server: Server,
    transport: Callable[[], GetTransport],
    *,
    partition: Callable[[bytes], str],
    runtime: ClientRuntime[ExchangeResult],
) -> OpenCache:
    """``partition``: computes the partition from the store's secret, unless the options name one."""
    calls = runtime.calls
    store, locks, secret = await calls.run(_opened_store, options, runtime.warn, runtime.clock)
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


def _opened_store(
    options: CacheOptions, warn: Callable[[str], None], clock: Callable[[], float]
) -> tuple[Store, Path | None, bytes]:
    directory = None if options.directory is None else Path(options.directory)
    return open_store(directory, limits=options.limits, clock=clock, warn=warn)
