"""What a client has while it is open, put together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from specmux_cache.entries import EntryStore
from specmux_cache.events import EventLog
from specmux_cache.exchange import Exchange
from specmux_cache.flight import FlightLocks
from specmux_cache.http.server import Server
from specmux_cache.http.transport import Transport
from specmux_cache.options import CacheOptions
from specmux_cache.root import Catalog
from specmux_cache.store.opening import open_store


@dataclass(frozen=True, slots=True)
class Opened:
    """Lives on one event loop. Whoever has it closes the exchange, then the store."""

    entry_store: EntryStore
    exchange: Exchange
    catalog: Catalog


async def opened(
    options: CacheOptions,
    server: Server,
    transport: Transport,
    *,
    partition: Callable[[bytes], str],
    events: EventLog,
    warn: Callable[[str], None],
    clock: Callable[[], float],
) -> Opened:
    """``partition``: of what callers are known by, given the store's secret, unless the options name one."""
    store, locks, secret = await asyncio.to_thread(
        open_store, options.directory, limits=options.limits, clock=clock, warn=warn
    )
    entry_store = EntryStore(
        store, server=str(server), partition=options.partition or partition(secret), warn=warn
    )
    await transport.__aenter__()
    exchange = Exchange(
        server,
        entry_store,
        transport=transport,
        locks=FlightLocks(locks, timeout=options.flight_timeout),
        options=options,
        events=events,
        clock=clock,
    )
    return Opened(entry_store, exchange, Catalog(server, exchange, options=options, clock=clock))
