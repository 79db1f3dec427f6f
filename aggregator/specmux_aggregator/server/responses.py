"""A Prepared on its way out through aiohttp: its bytes as they are, large bodies under flow control.

aiohttp's own responses build and serialise a header map for each request; that, not the network, is most of
what a small answer costs there.
"""

from __future__ import annotations

import asyncio
import time

from aiohttp import HttpVersion10

from specmux_aggregator.http.prepared import Prepared
from specmux_aggregator.server.protocols import ClientConnection, WireRequest
from specmux_aggregator.server.sending import SLICE, WHOLE_MAX


class WireResponse:
    """Writes one Prepared; has what aiohttp's connection asks of a response, and no more."""

    __slots__ = ("_connection", "_is_last", "_prepared", "_sent", "_started")

    def __init__(
        self,
        prepared: Prepared,
        *,
        connection: ClientConnection,
        started: float,
        is_last: bool,
        sent: int | None = None,
    ) -> None:
        """``sent`` bytes of the body have left before, and the head with them. ``started``: monotonic."""
        self._prepared = prepared
        self._connection = connection
        self._started = started
        self._is_last = is_last
        self._sent = sent

    @property
    def keep_alive(self) -> bool:
        return not self._is_last and not self._connection.is_drained

    async def prepare(self, request: WireRequest) -> None:
        """Write everything; aiohttp calls ``write_eof`` next. Raises ConnectionError, as aiohttp expects."""
        stats = self._connection.connections.stats
        try:
            await self._write(request)
        except (ConnectionError, asyncio.CancelledError):
            stats.disconnects += 1
            raise
        stats.observe(self._prepared, time.monotonic() - self._started)

    async def write_eof(self) -> None:
        """Nothing is left to write."""
        await self._connection.linger()

    async def _write(self, request: WireRequest) -> None:
        writer, body, sent = request.writer, self._prepared.body, self._sent
        if sent is None:
            whole = len(body) <= WHOLE_MAX
            await writer.write(b"".join((*self._head(request), body if whole else memoryview(body)[:SLICE])))
            sent = len(body) if whole else SLICE
        while sent < len(body):
            await writer.drain()
            sent = self._connection.push(body, sent)
        await writer.drain()

    def _head(self, request: WireRequest) -> tuple[bytes, ...]:
        lines = self._connection.connections.lines.end_of_head(self._prepared, time.monotonic())
        if self._is_last:
            return self._prepared.head, b"Connection: close\r\n", lines
        if request.message.version == HttpVersion10:
            return self._prepared.head, b"Connection: keep-alive\r\n", lines
        return self._prepared.head, lines
