"""Relay the body of a client's request to a backend, no faster than the backend reads it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from typing import Final

from aiohttp import hdrs

from specmux_aggregator.server.bodies import invite
from specmux_aggregator.server.protocols import WireRequest

RATE_MIN: Final = 1024.0
"""Bytes per second that a body must deliver on average after ``SLOW_TIMES`` answer_timeout."""

SLOW_TIMES: Final = 4

STOP: Final = 1.0  # seconds for a cancelled writer to finish; one turn of the event loop suffices


class Upload:
    """Read once: aiohttp does not resend a request whose body it has read. ``sent`` receives the number of
    bytes of each piece."""

    def __init__(self, request: WireRequest, *, sent: Callable[[int], None]) -> None:
        self._request = request
        self._sent = sent
        self._is_free = asyncio.Event()
        """Set when nothing waits for the next piece."""
        self._is_free.set()
        self._deadline: asyncio.Timeout | None = None
        self._patience = 0.0
        self._began = 0.0
        self._moved = 0
        self._whole: Callable[[], None] = _do_nothing
        self.is_stalled = False
        """Whether it was given up while the client owed the next piece."""
        self.is_broken = False
        """Whether the framing of the body is not HTTP."""

    @property
    def length(self) -> int | None:
        """Number of bytes declared by the client; None for a chunked body."""
        message = self._request.message
        return None if message.chunked else int(message.headers[hdrs.CONTENT_LENGTH])

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._pieces()

    def answer_within(self, seconds: float, deadline: asyncio.Timeout, *, whole: Callable[[], None]) -> None:
        """Extend the deadline by ``seconds`` with each piece, until ``answered``, but no further than a body
        of RATE_MIN needs. ``whole`` is called after the last piece."""
        self._patience = seconds
        self._deadline = deadline
        self._began = asyncio.get_running_loop().time()
        self._whole = whole

    def note_answer(self) -> None:
        """Note that the answer begins, or that there will be none."""
        self._deadline = None

    async def wait_for_stop(self) -> None:
        """Wait until nothing reads the body any more, after aiohttp's writer was cancelled; others may then
        read the rest."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(STOP):
                await self._is_free.wait()

    async def _pieces(self) -> AsyncIterator[bytes]:
        self._invite()
        payload = self._request.payload
        if not payload.is_eof():
            yield b""  # sends the head now; aiohttp would delay it until the first bytes of the body
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
                self._note_whole()
                return
            yield piece
            self._sent(len(piece))
            self._put_off()

    def _put_off(self) -> None:
        if self._deadline is not None and not self._deadline.expired():
            now = asyncio.get_running_loop().time()
            slowest = self._began + (SLOW_TIMES - 1) * self._patience + self._moved / RATE_MIN
            self._deadline.reschedule(min(now, slowest) + self._patience)

    def _note_whole(self) -> None:
        """From now on the backend is being waited for."""
        if self._deadline is not None and not self._deadline.expired():
            self._deadline.reschedule(asyncio.get_running_loop().time() + self._patience)
        self._whole()

    def _invite(self) -> None:
        if self._deadline is not None:
            invite(self._request)


def _do_nothing() -> None:
    """Default callback."""
