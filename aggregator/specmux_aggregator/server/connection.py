"""A client's connection: aiohttp's, with bounds on what it holds, deadlines, and our own words for bad input.

aiohttp knows one timeout, for an idle connection. ``overdue`` adds three: for a head that does not end (slow
loris), for an answer that is not read (aiohttp waits for such a client for ever), and for requests that wait
behind one that is hardly read.
"""

from __future__ import annotations

import asyncio
import logging
import select
import time
from collections.abc import Callable
from typing import Any, Final, cast

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from specmux_aggregator.config.settings import Listen
from specmux_aggregator.server.held import END_OF_HEAD, PAUSE_AT, HeadTooLarge, HeldBytes
from specmux_aggregator.server.protocols import Begun, Shared, WireRequest
from specmux_aggregator.server.refusals import FAILED, answer_to, path_of
from specmux_aggregator.server.responses import WireResponse
from specmux_aggregator.server.sending import push

logger = logging.getLogger(__name__)

HEADERS_MAX: Final = 128
LINGER: Final = 2.0  # seconds for which the rest of an unwanted request body is read and dropped
RECEIVE: Final = 16 * 1024  # bytes taken from a socket at once
BODY_BUFFER: Final = 32 * 1024  # bytes of a request's body that wait, or twice as many, before reading stops
HANG_UP: Final = getattr(select, "POLLRDHUP", 0)
"""Linux's word for a client that closed its side; with 0 only one that closed both is noticed."""

Parsed = tuple[Any, bool, bytes]
"""What aiohttp's parser returns: messages with their payloads, whether the protocol changes, what is left."""

NOTHING: Final[Parsed] = ((), False, b"")


class Tap:
    """Stands in for a connection's parser: ``feed_data`` goes to the connection first."""

    __slots__ = ("feed_data", "feed_eof", "message_consumed", "pause_reading", "set_upgraded")

    def __init__(self, parser: Any, feed: Callable[[bytes], Parsed]) -> None:
        self.feed_data = feed
        self.feed_eof = parser.feed_eof
        self.message_consumed = parser.message_consumed
        self.pause_reading = parser.pause_reading
        self.set_upgraded = parser.set_upgraded


class Deaf:
    """Stands in for the parser of a client that is refused: what that held of the head is let go of."""

    def feed_data(self, _: bytes) -> Parsed:
        return NOTHING

    def nothing(self, *_: object) -> None:
        """There is no parser."""

    feed_eof = message_consumed = pause_reading = set_upgraded = nothing


class Connection(RequestHandler):
    """One client's connection."""

    __slots__ = (
        "_is_ending",
        "_is_half_closed",
        "_is_lingering",
        "_is_refused",
        "_message_consumed",
        "_parse",
        "_partial_since",
        "_pushes",
        "_queued",
        "_stalled",
        "_wire",
        "begun",
        "connections",
        "held",
        "streamed",
    )

    def __init__(self, connections: Shared, **settings: Any) -> None:
        manager: Any = connections  # aiohttp's own type of it wants a whole web.Server
        super().__init__(manager, **settings)
        self.connections = connections
        self.held = HeldBytes(connections.held)
        self._wire: asyncio.Transport | None = None
        """The transport until the connection is lost; aiohttp forgets it while answers wait to be sent."""
        self._is_half_closed = False
        self._is_ending = False
        """It ends with the running answer, and the body that belongs to it is still read."""
        self._is_lingering = False
        """Its last answer is written."""
        self._is_refused = False
        """Its last answer is on its way, and what else it sends is dropped."""
        self._queued = (0.0, -1)
        """Since when requests wait behind the same one, and how many came before them."""
        self._partial_since = 0.0
        """Monotonic seconds since when the head of a request is awaited; 0: none has begun."""
        self._stalled = (0.0, 0, 0)
        """Since when the write buffer is what it is; its bytes; ``_pushes`` then."""
        self._pushes = 0
        """Tells a full buffer that moves from one that does not."""
        self.begun: Begun | None = None
        """What the accelerator left unfinished of the next message's answer."""
        self.streamed: WireRequest | None = None
        """The request that a backend is answering: then a client that closes its side has left."""

    @property
    def is_half_closed(self) -> bool:
        """The client will send nothing more."""
        return self._is_half_closed

    @property
    def is_drained(self) -> bool:
        """The client will send nothing more, and all it sent was taken up."""
        return self._is_half_closed and not self._messages

    @property
    def is_idle(self) -> bool:
        """No request is being answered, and none is queued."""
        return self._waiter is not None and not self._waiter.done() and not self._messages

    @property
    def idle_since(self) -> float | None:
        """When it was last answered, or made, in seconds that only order; None while it is busy."""
        wire = self._wire
        if wire is None or not self.is_idle or wire.get_write_buffer_size():
            return None
        return self._next_keepalive_close_time

    def push(self, body: bytes, sent: int) -> int:
        """Write more of a large body, as ``sending.push``. Raises ConnectionResetError without a client."""
        transport = self.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client is gone")
        self._pushes += 1
        file = None if self.ssl_context is not None else self.connections.files.file_of(body)
        return push(transport, body, sent, file)

    def send(self, data: bytes) -> None:
        """Write a part of an answer that streams in. Raises ConnectionResetError without a client."""
        transport = self.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the client is gone")
        self._pushes += 1
        transport.write(data)

    def end_streaming(self) -> None:
        """The backend's answer is written. Its body may have taken long to come: the next head has time."""
        self.streamed = None
        self._partial_since = 0.0
        if self._is_ending:
            self.close()

    def take_begun(self) -> Begun | None:
        begun, self.begun = self.begun, None
        return begun

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._partial_since = time.monotonic()
        is_admitted = self.connections.admission.admit(self, transport.get_extra_info("peername"))
        super().connection_made(transport)
        parser: Any = self._parser
        self._parse = parser.feed_data
        self._message_consumed = parser.message_consumed
        tap: Any = Tap(parser, self._feed)  # has what aiohttp asks of its parser
        self._parser = tap
        self._wire = wire = cast(asyncio.Transport, transport)
        # sending.push relies on being told of every byte that waits. asyncio's TLS tells from this mark on,
        # others above it: with 0 it would say after every other write that something waits, and not its end.
        wire.set_write_buffer_limits(high=0 if self.ssl_context is None else 1)
        _receive_little(wire)
        if is_admitted:
            self.connections.opened(self)
        else:
            self.force_close()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._wire = None
        self.held.clear()
        self.connections.closed(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if len(data) <= RECEIVE:
            self._receive(data)
            return
        # uvloop hands over up to 250 KiB: what is bounded by the read has to be the same under both loops.
        for begin in range(0, len(data), RECEIVE):
            self._receive(data[begin : begin + RECEIVE])

    def _receive(self, data: bytes) -> None:
        count = self._request_count
        super().data_received(data)
        if self._request_count == count:
            if data and not self._partial_since:
                self._partial_since = time.monotonic()
        elif data.endswith(END_OF_HEAD):
            self._partial_since = 0.0
        else:
            # A body, or the start of another head. After a request with a body, then, the next head is due
            # within the header timeout.
            self._partial_since = time.monotonic()
        streamed = self.streamed
        if streamed is not None and self._request_count != count and not streamed.payload.is_eof():
            # The parser gave up within the body, and says so only to who takes the next message.
            streamed.payload.set_exception(web.RequestPayloadError("the framing of the body is broken"))
        if self._messages and self.held.cost > PAUSE_AT and not self._buffer_paused:
            self._pause_reading_for_buffer()
        if self.connections.held.is_too_much:
            self.connections.cut_largest()

    def _resume_reading_if_drained(self) -> None:
        self.held.taken(len(self._messages))
        if not self._messages or self.held.cost <= PAUSE_AT:
            super()._resume_reading_if_drained()

    def _feed(self, data: bytes) -> Parsed:
        """Stands before the parser. Raises what that raises, and HeadTooLarge."""
        if self._is_refused:
            return NOTHING
        parsed: Parsed = self._parse(data)
        self._count(data, parsed)
        return parsed

    def _count(self, data: bytes, parsed: Parsed) -> None:
        self.held.taken(len(self._messages))
        try:
            self.held.take(data, parsed[0])
        except HeadTooLarge:
            self._is_refused = True
            deaf: Any = Deaf()
            self._parser, self._parse, self._message_consumed = deaf, deaf.feed_data, deaf.message_consumed
            self.held.clear()
            raise

    def eof_received(self) -> bool | None:  # type: ignore[override]  # asyncio's signature, narrowed there
        """Keep the connection until all is answered: a client may close its side first (RFC 9112 9.6)."""
        if self.is_idle or self._is_lingering:
            return None
        if self.ssl_context is not None:  # TLS has no half-closed state in asyncio
            return None
        if self.streamed is not None:
            # A watch may be silent for minutes: its backend would be held for a client that is gone.
            return None
        self._is_half_closed = True
        return True

    def handle_error(
        self, request: Any, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> Any:
        """The answer to what aiohttp's parser refused, and to a bug of ours. The connection ends with it."""
        if status >= 500:
            logger.error("%s %s failed", request.message.method, path_of(request.message), exc_info=exc)
            prepared = FAILED
        else:
            self.connections.stats.malformed += 1
            prepared = answer_to(exc)
            # The parser's own message may quote a header field, and with it a credential.
            self.connections.complaints.malformed(self.peername, type(exc).__name__)
        return WireResponse(prepared, connection=self, started=time.monotonic(), is_last=True)

    async def linger(self) -> None:
        """Drop for a while what a refused client still sends: closed at once, its answer would be lost to it
        (RFC 9112 9.6)."""
        if self._is_refused and self.transport is not None and not self._is_half_closed:
            self._is_lingering = True
            if self.transport.can_write_eof():
                self.transport.write_eof()
            await asyncio.sleep(LINGER)  # cancelled as soon as it is gone

    def overdue(self, now: float, listen: Listen) -> str | None:
        """Why this connection should be cut; None: it should not."""
        if self._wire is None:
            return None
        if self.is_idle and self._is_half_closed:
            return "half_closed"
        if self.streamed is not None and self._has_left(self._wire):
            return "left"
        if self._partial_since and self.is_idle and now - self._partial_since > listen.header_timeout:
            return "header_timeout"
        if self._is_stuck(now, listen.write_timeout):
            return "write_stall"
        waiting = self._wire.get_write_buffer_size()
        since, before, pushes = self._stalled
        if waiting == 0 or waiting != before or pushes != self._pushes:
            self._stalled = (now, waiting, self._pushes)
        elif now - since > listen.write_timeout:
            return "write_stall"
        return None

    def _is_stuck(self, now: float, timeout: float) -> bool:
        """Whether requests wait for too long behind an answer of ours that is read, but hardly."""
        waiting = len(self._messages)
        self.held.taken(waiting)
        taken = self._request_count - waiting
        if not waiting or self.streamed is not None or self._queued[1] != taken:
            self._queued = (now, taken)
        return now - self._queued[0] > timeout

    def _has_left(self, wire: asyncio.Transport) -> bool:
        """Whether the client closed its side while nothing is read, since it sent more than is taken up: then
        no event tells."""
        if not (self._reading_paused or self._buffer_paused):
            return False
        poll = select.poll()
        poll.register(wire.get_extra_info("socket"), HANG_UP)
        return bool(poll.poll(0))

    def cut_off(self) -> None:
        """End the connection at once, whatever waits to be written."""
        self.force_close()
        if self._wire is not None:
            self._wire.abort()

    def close_when_answered(self) -> None:
        """End the connection now if it is idle, else after the running answer."""
        if self.is_idle:
            self.force_close()
        elif self.streamed is not None and not self.streamed.payload.is_eof():
            self._is_ending = True  # closed to aiohttp means that nothing is read any more, bodies included
        else:
            self.close()


def _receive_little(transport: Any) -> None:
    """asyncio makes room for 256 KiB at each read; a request has hundreds of bytes."""
    if hasattr(transport, "max_size"):
        transport.max_size = RECEIVE
