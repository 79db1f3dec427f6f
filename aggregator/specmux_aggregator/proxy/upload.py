"""The body of a client's request on its way to a backend: read as fast as the backend takes it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Final

from aiohttp import hdrs

from specmux_aggregator.server.bodies import invite
from specmux_aggregator.server.protocols import WireRequest

RATE_MIN: Final = 1024.0
"""Bytes in a second that a body has to bring on average, once it took ``SLOW_TIMES`` answer_timeout."""

SLOW_TIMES: Final = 4

STOP: Final = 1.0  # seconds that a cancelled writer gets to let go; it takes one turn of the loop


class Upload:
    """Is read once: aiohttp sends no request again of whose body it read. ``sent`` is told the bytes of each
    piece."""

    def __init__(self, request: WireRequest, *, sent: Callable[[int], None]) -> None:
        self._request = request
        self._sent = sent
        self._is_free = asyncio.Event()
        """Nobody waits for the next piece."""
        self._is_free.set()
        self._deadline: asyncio.Timeout | None = None
        self._patience = 0.0
        self._began = 0.0
        self._moved = 0
        self._whole: Callable[[], None] = _nothing
        self.is_stalled = False
        """It was given up while the client owed the next piece."""
        self.is_broken = False
        """The body has no end: its framing is not HTTP."""

    @property
    def length(self) -> int | None:
        """Bytes, where the client says so; None for a chunked body."""
        message = self._request.message
        return None if message.chunked else int(message.headers[hdrs.CONTENT_LENGTH])

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces()

    def answer_within(self, seconds: float, deadline: asyncio.Timeout, *, whole: Callable[[], None]) -> None:
        """Put the deadline off by ``seconds`` with each piece that moves, until ``answered``; no further than
        a body of RATE_MIN gets. ``whole`` is called once the last piece was read."""
        self._patience = seconds
        self._deadline = deadline
        self._began = asyncio.get_running_loop().time()
        self._whole = whole

    def answered(self) -> None:
        """The answer begins, or there will be none: from here on nothing else goes to the client."""
        self._deadline = None

    async def stopped(self) -> None:
        """Wait until nobody reads, after aiohttp's writer was cancelled: others may read what is left."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP):
                await self._is_free.wait()

    async def _pieces(self) -> AsyncIterator[bytes]:
        self._invite()
        payload = self._request.payload
        if not payload.is_eof():
            yield b""  # the head goes out now: aiohttp keeps it back for the first bytes of the body
        while True:
            self._is_free.clear()
            try:
                piece = await payload.readany()
            except asyncio.CancelledError:
                self.is_stalled = True
                raise
            except Exception:
                self.is_broken = True
                raise
            finally:
                self._is_free.set()
            self._moved += len(piece)
            self._put_off()
            if not piece:
                self._whole_came()
                return
            yield piece
            self._sent(len(piece))
            self._put_off()

    def _put_off(self) -> None:
        if self._deadline is not None and not self._deadline.expired():
            now = asyncio.get_running_loop().time()
            slowest = self._began + (SLOW_TIMES - 1) * self._patience + self._moved / RATE_MIN
            self._deadline.reschedule(min(now, slowest) + self._patience)

    def _whole_came(self) -> None:
        """From here on it is the backend that is waited for."""
        if self._deadline is not None and not self._deadline.expired():
            self._deadline.reschedule(asyncio.get_running_loop().time() + self._patience)
        self._whole()

    def _invite(self) -> None:
        if self._deadline is not None:
            invite(self._request)


def _nothing() -> None:
    """Nobody asked to be told."""
