"""Connections for what is passed on: kept, exchanged, and all let go of in the end."""

from __future__ import annotations

import asyncio

from prometheus_client import CollectorRegistry

from deadline import DEADLINE
from fakes.streaming_backend import Seen, StreamingBackend, streaming
from running.service import QUICK, backend
from specmux_aggregator.aggregation.ownership import merge
from specmux_aggregator.metrics.instruments import Metrics
from specmux_aggregator.model.failure import Failure
from specmux_aggregator.proxy.exchanges import Exchanges
from specmux_aggregator.upstream.credentials import Identities


async def endless(seen: Seen) -> None:
    await seen.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    await seen.wait_until_left()


async def test_close_cuts_also_what_streams_from_a_backend_that_was_exchanged() -> None:
    async with (
        streaming(StreamingBackend(script=endless)) as before,
        streaming(StreamingBackend(script=endless)) as after,
    ):
        exchanges = Exchanges(
            lambda: merge({}, generation=1),
            Metrics(CollectorRegistry()),
            polling=QUICK,
            identities=Identities(),
        )
        begun = [
            await exchanges.begin(backend("a", origin.url), "GET", "/", [], is_ours=False)
            for origin in (before, after)
        ]
        assert not any(isinstance(item, Failure) for item in begun)
        assert not before.requests[0].left.is_set()
        await exchanges.close()
        for origin in (before, after):
            await asyncio.wait_for(origin.requests[0].left.wait(), DEADLINE)
        for item in begun:
            assert not isinstance(item, Failure)
            await item.close()
