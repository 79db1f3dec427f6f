"""A Prepared on its way out through aiohttp: its bytes as they are, large bodies under flow control.

aiohttp's own responses build and serialise a header map for each request; that, not the network, is most of
what a small answer costs there.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from aiohttp import HttpVersion10, web

from specmux_aggregator.sending import SLICE, WHOLE_MAX

if TYPE_CHECKING:
    from aiohttp.abc import AbstractStreamWriter

    from specmux_aggregator.connections import Connection
    from specmux_aggregator.model import Prepared


class WireResponse(web.StreamResponse):
    """Writes one Prepared. ``sent`` bytes of its body have left before; then its head has, too."""

    def __init__(
        self,
        prepared: Prepared,
        *,
        connection: Connection,
        started: float,
        is_last: bool,
        sent: int | None = None,
    ) -> None:
        super().__init__(status=prepared.status)
        self._prepared = prepared
        self._connection = connection
        self._started = started
        self._is_last = is_last
        self._sent = sent

    @property
    def keep_alive(self) -> bool:
        return not self._is_last and not self._connection.is_drained

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        """Write everything: aiohttp calls this once, then ``write_eof``. Raises ConnectionError as aiohttp
        does.
        """
        try:
            await self._write(request)
        except ConnectionError:
            self._connection.connections.stats.disconnects += 1
            raise
        self._connection.connections.stats.observe(self._prepared, time.monotonic() - self._started)
        return None

    async def write_eof(self, data: bytes = b"") -> None:
        """Nothing is left to write."""

    async def _write(self, request: web.BaseRequest) -> None:
        writer, body, connection = request.writer, self._prepared.body, self._connection
        if self._sent is None and len(body) <= WHOLE_MAX:
            await writer.write(b"".join((*self._head(request), body)))
        else:
            sent = self._sent
            if sent is None:
                await writer.write(b"".join((*self._head(request), memoryview(body)[:SLICE])))
                sent = SLICE
            while sent < len(body):
                await writer.drain()
                sent = connection.push(body, sent)
        await writer.drain()

    def _head(self, request: web.BaseRequest) -> tuple[bytes, ...]:
        lines = self._connection.connections.lines.end_of_head(self._prepared, time.monotonic())
        if self._is_last:
            return self._prepared.head, b"Connection: close\r\n", lines
        if request.version == HttpVersion10:
            return self._prepared.head, b"Connection: keep-alive\r\n", lines
        return self._prepared.head, lines
