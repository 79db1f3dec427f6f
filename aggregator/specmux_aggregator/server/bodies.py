"""Request bodies that are read whole before they are answered, bounded in bytes and time.

Invariant: all bodies in memory together take at most ``BODIES_MAX`` plus one read each. They also count
towards what all connections hold (input_limits.py), of which they may take half. A client that sends slowly
gives way to one that comes later.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from aiohttp import HttpVersion11, hdrs

from specmux_aggregator.server.input_limits import HELD_MAX, HeldByAll
from specmux_aggregator.server.protocols import WireRequest

BODIES_MAX: Final = HELD_MAX // 2

CONTINUE: Final = b"HTTP/1.1 100 Continue\r\n\r\n"


class BodyRefused(Exception):
    """The body could not be read to its end."""


class BodyTooLarge(BodyRefused):
    """The body is, or declares that it is, larger than allowed."""


class BodyStalled(BodyRefused):
    """The body did not arrive in time, or was dropped to make room for another."""


class BodyBroken(BodyRefused):
    """The framing of the body is not HTTP."""


class BodiesFull(BodyRefused):
    """Other bodies take all the memory that bodies may take."""


class RequestBodies:
    """The request bodies of one endpoint. Lives on one event loop."""

    def __init__(self, *, most_bytes: int, seconds: float) -> None:
        """``most_bytes``: the most that one body may have. ``seconds``: the time in which it must arrive."""
        self._most_bytes = most_bytes
        self._seconds = seconds
        self._coming: dict[asyncio.Timeout, _Place] = {}
        """Deadlines of the bodies that are incomplete, oldest first."""
        self.held = 0
        """Bytes of all bodies."""

    @asynccontextmanager
    async def whole(self, request: WireRequest) -> AsyncIterator[bytes]:
        """The body; it counts as held until the context ends. Raises BodyRefused."""
        place = _Place(self, request.connection.connections.held)
        try:
            yield await self._read(request, place)
        finally:
            place.leave()

    async def _read(self, request: WireRequest, place: _Place) -> bytes:
        length = request.message.headers.get(hdrs.CONTENT_LENGTH)
        if length is not None and int(length) > self._most_bytes:
            raise BodyTooLarge
        connection = request.connection
        connection.streamed = request
        deadline = asyncio.timeout(self._seconds)
        try:
            async with deadline:
                self._coming[deadline] = place
                invite(request)
                return await self._collect(request, place, deadline)
        except TimeoutError:
            raise BodyStalled from None
        finally:
            self._coming.pop(deadline, None)
            connection.end_streaming()

    async def _collect(self, request: WireRequest, place: _Place, deadline: asyncio.Timeout) -> bytes:
        body = bytearray()
        while True:
            try:
                piece = await request.payload.readany()
            except Exception as error:
                raise BodyBroken from error
            if not piece:
                return bytes(body)
            if len(body) + len(piece) > self._most_bytes:
                raise BodyTooLarge
            body += piece
            place.take(len(piece))
            if self.held > BODIES_MAX:
                self._make_room(deadline)

    def _make_room(self, deadline: asyncio.Timeout) -> None:
        """End the body that has been arriving longest. Raises BodiesFull if that is this one."""
        oldest = next(iter(self._coming))
        if oldest is deadline:
            raise BodiesFull
        self._coming.pop(oldest).leave()
        oldest.reschedule(asyncio.get_running_loop().time())


class _Place:
    """The memory of one body."""

    def __init__(self, bodies: RequestBodies, all_held: HeldByAll) -> None:
        self._bodies = bodies
        self._all_held = all_held
        self._taken = 0

    def take(self, size: int) -> None:
        self._taken += size
        self._bodies.held += size
        self._all_held.cost += size

    def leave(self) -> None:
        self.take(-self._taken)


def invite(request: WireRequest) -> None:
    """Send 100 (Continue) to a client that waits for it before it sends the body (RFC 9110 10.1.1)."""
    message = request.message
    if request.payload.is_eof() or message.version != HttpVersion11 or hdrs.EXPECT not in message.headers:
        return
    request.connection.send(CONTINUE)
