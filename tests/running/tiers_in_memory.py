"""Connections of each tier over transports in memory: what is sent comes in the pieces it was sent in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from running.serving import TIERS, FakeService, timeless
from specmux_aggregator.config.settings import ListenSettings
from specmux_aggregator.http.prepared_answer import PreparedAnswer
from specmux_aggregator.server.listener import HTTPServer
from specmux_aggregator.server.protocols import Pending

TURNS = 400
"""Turns of the event loop in which all is answered that will be."""

QUIET = 12
"""Turns without a byte after which nothing more comes."""


class QuickService(FakeService):
    """What has to be waited for takes turns of the loop, and no time."""

    async def respond(self, pending: Pending) -> PreparedAnswer:
        for _ in range(3):
            await asyncio.sleep(0)
        return self.answer(pending.request)


class Transport(asyncio.Transport):
    """A client in memory that reads everything at once."""

    def __init__(self, connection: Any) -> None:
        super().__init__()
        self._connection = connection
        self._is_closing = False
        self._is_reading = True
        self.written = b""

    def write(self, data: Any) -> None:
        if not self._is_closing:
            self.written += bytes(data)

    def is_closing(self) -> bool:
        return self._is_closing

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            asyncio.get_running_loop().call_soon(self._connection.connection_lost, None)

    abort = close

    def can_write_eof(self) -> bool:
        return False

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        self._is_reading = True

    def is_reading(self) -> bool:
        return self._is_reading


@asynccontextmanager
async def tiers_in_memory() -> AsyncIterator[dict[str, HTTPServer]]:
    """A started server of each tier."""
    servers = {
        tier: HTTPServer(QuickService(), ListenSettings(port=0), use_memo=tier == "memoised")
        for tier in TIERS
    }
    try:
        for server in servers.values():
            await server.start()
        yield servers
    finally:
        for server in servers.values():
            await server.stop()


async def answers(server: HTTPServer, pieces: list[bytes]) -> tuple[bytes, bool]:
    """What the server writes, and whether it closes, when it gets these pieces one by one."""
    connections: Any = server._connections
    connection = connections.made()
    transport = Transport(connection)
    connection.connection_made(transport)
    await _until_quiet(transport)
    for piece in pieces:
        if transport.is_closing():
            break
        if transport.is_reading():
            connection.data_received(piece)
        await _until_quiet(transport)
    is_closed = transport.is_closing()
    transport.close()
    await _until_quiet(transport)
    return timeless(transport.written), is_closed


async def _until_quiet(transport: Transport) -> None:
    quiet, size = 0, -1
    for _ in range(TURNS):
        quiet = quiet + 1 if len(transport.written) == size else 0
        size = len(transport.written)
        if quiet == QUIET:
            return
        await asyncio.sleep(0)
