"""Connections of clients: aiohttp's, with a cap, more deadlines, and our own words for bad input.

aiohttp knows one timeout, for an idle connection. ``Connections.sweep`` adds two: for a head that does not
end (slow loris), and for an answer that is not read (aiohttp waits for such a client for ever).
"""

from __future__ import annotations

import asyncio
import logging
import select
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final, cast

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http import RawRequestMessage
from aiohttp.http_exceptions import BadHttpMethod, InvalidHeader, InvalidURLError, LineTooLong
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader
from aiohttp.web_protocol import RequestHandler

from specmux_aggregator.config.settings import Listen
from specmux_aggregator.http.prepared import Prepared, TimeLines, refusal
from specmux_aggregator.server.client_addresses import ClientAddresses, address_of
from specmux_aggregator.server.handshakes import Handshake
from specmux_aggregator.server.protocols import Response
from specmux_aggregator.server.responses import WireResponse
from specmux_aggregator.server.sending import BodyFiles, push
from specmux_aggregator.server.stats import RequestStats

logger = logging.getLogger(__name__)

END_OF_HEAD: Final = b"\r\n\r\n"
LINE_MAX: Final = 8190  # bytes of a request line, and of one header field
HEADERS_MAX: Final = 128
LINGER: Final = 2.0  # seconds for which the rest of an unwanted request body is read and dropped
PATH_SHOWN: Final = 120  # characters of a path in a log line
RECEIVE: Final = 16 * 1024  # bytes taken from a socket at once
HANG_UP: Final = getattr(select, "POLLRDHUP", 0)
"""Linux's word for a client that closed its side; with 0 only one that closed both is noticed."""

TOO_LONG: Final = refusal(400, "BadRequest", f"a line of the request's head is longer than {LINE_MAX} bytes")
BAD_TARGET: Final = refusal(400, "BadRequest", "the request target is malformed")
BAD_METHOD: Final = refusal(400, "BadRequest", "the request's method is unknown")
BAD_HEADER: Final = refusal(400, "BadRequest", "a header field of the request is malformed")
MALFORMED: Final = refusal(400, "BadRequest", "the request is malformed")
FAILED: Final = refusal(500, "InternalError", "the request could not be answered")


@dataclass(frozen=True, slots=True)
class Begun:
    """A large answer of which the head and the first ``sent`` bytes of the body are written."""

    prepared: Prepared
    sent: int
    started: float
    """Monotonic seconds."""


class WireRequest:
    """One parsed message; has what aiohttp's connection asks of a request, and no more."""

    __slots__ = ("_task", "connection", "has_body", "message", "payload", "writer")

    def __init__(
        self,
        message: RawRequestMessage,
        payload: StreamReader,
        protocol: Connection,
        writer: AbstractStreamWriter,
        task: asyncio.Task[None],
    ) -> None:
        self.message = message
        self.payload = payload
        self.has_body = payload is not EMPTY_PAYLOAD
        self.connection = protocol
        self.writer = writer
        self._task = task

    def _cancel(self, exc: BaseException) -> None:
        """The connection is gone. Nobody waits for the body."""

    def _finish(self) -> None:
        """The answer is ready. Nothing is held."""


class Connection(RequestHandler):
    """One client's connection."""

    __slots__ = (
        "_is_ending",
        "_is_half_closed",
        "_partial_since",
        "_pushes",
        "_stalled",
        "_wire",
        "begun",
        "connections",
        "relayed",
    )

    def __init__(self, connections: Connections, **settings: Any) -> None:
        super().__init__(connections, **settings)
        self.connections = connections
        self._wire: asyncio.Transport | None = None
        """The transport until the connection is lost; aiohttp forgets it while answers wait to be sent."""
        self._is_half_closed = False
        self._is_ending = False
        """It ends with the running answer, and the body that belongs to it is still read."""
        self._partial_since = 0.0
        """Monotonic seconds since when the head of a request is awaited; 0: none has begun."""
        self._stalled = (0.0, 0, 0)
        """Since when the write buffer is what it is; its bytes; ``_pushes`` then."""
        self._pushes = 0
        """Tells a full buffer that moves from one that does not."""
        self.begun: Begun | None = None
        """What the accelerator left unfinished of the next message's answer."""
        self.relayed: WireRequest | None = None
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

    def end_relaying(self) -> None:
        """The backend's answer is written. Its body may have taken long to come: the next head has time."""
        self.relayed = None
        self._partial_since = 0.0
        if self._is_ending:
            self.close()

    def take_begun(self) -> Begun | None:
        begun, self.begun = self.begun, None
        return begun

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._partial_since = time.monotonic()
        is_admitted = self.connections.admit(self, transport.get_extra_info("peername"))
        super().connection_made(transport)
        self._wire = wire = cast(asyncio.Transport, transport)
        # sending.push relies on being told of every byte that waits. asyncio's TLS tells from this mark on,
        # others above it: with 0 it would say after every other write that something waits, and not its end.
        wire.set_write_buffer_limits(high=0 if self.ssl_context is None else 1)
        _receive_little(wire)
        if not is_admitted:
            self.force_close()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._wire = None
        self.connections.release(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
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
        relayed = self.relayed
        if relayed is not None and self._request_count != count and not relayed.payload.is_eof():
            # The parser gave up within the body, and says so only to who takes the next message.
            relayed.payload.set_exception(web.RequestPayloadError("the framing of the body is broken"))

    def eof_received(self) -> bool | None:  # type: ignore[override]  # asyncio's signature, narrowed there
        """Keep the connection until all is answered: a client may close its side first (RFC 9112 9.6)."""
        if self.is_idle or self.ssl_context is not None:  # TLS has no half-closed state in asyncio
            return None
        if self.relayed is not None:
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
            prepared = _answer_to(exc)
            # The parser's own message may quote a header field, and with it a credential.
            logger.info("malformed request from %s: %s", self.peername, type(exc).__name__)
        return WireResponse(prepared, connection=self, started=time.monotonic(), is_last=True)

    def overdue(self, now: float, listen: Listen) -> str | None:
        """Why this connection should be cut; None: it should not."""
        if self._wire is None:
            return None
        if self.is_idle and self._is_half_closed:
            return "half_closed"
        if self.relayed is not None and self._has_left(self._wire):
            return "left"
        if self._partial_since and self.is_idle and now - self._partial_since > listen.header_timeout:
            return "header_timeout"
        waiting = self._wire.get_write_buffer_size()
        since, before, pushes = self._stalled
        if waiting == 0 or waiting != before or pushes != self._pushes:
            self._stalled = (now, waiting, self._pushes)
        elif now - since > listen.write_timeout:
            return "write_stall"
        return None

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
        elif self.relayed is not None and not self.relayed.payload.is_eof():
            self._is_ending = True  # closed to aiohttp means that nothing is read any more, bodies included
        else:
            self.close()


class Connections(web.Server):
    """Makes the connections of one listener and keeps them in view. Lives in one event loop."""

    def __init__(
        self,
        handler: Callable[[WireRequest], Awaitable[Response]],
        listen: Listen,
        *,
        stats: RequestStats,
        make_connection: Callable[..., Connection] = Connection,
    ) -> None:
        # aiohttp's own types want a whole BaseRequest, of which WireRequest has what its connection asks for.
        handle: Any = handler
        factory: Any = WireRequest
        # Work that several clients wait for is shielded by whoever shares it; the one that left can go.
        super().__init__(handle, request_factory=factory, handler_cancellation=True)
        self.stats = stats
        self.lines = TimeLines()
        self.files = BodyFiles()
        self.listen = listen
        self._make_connection = make_connection
        self._open: dict[Connection, bytes] = {}
        """Each with the address that it counts under."""
        self._shaking: dict[Handshake, bytes] = {}
        """The same of those whose TLS handshake is not done."""
        self._addresses = ClientAddresses(listen.max_connections_per_address)
        self._is_empty = asyncio.Event()
        self._is_empty.set()

    def __call__(self) -> RequestHandler:
        return self._make_connection(
            self,
            loop=asyncio.get_running_loop(),
            keepalive_timeout=self.listen.keepalive_timeout,
            access_log=None,
            logger=logger,
            max_line_size=LINE_MAX,
            max_field_size=LINE_MAX,
            max_headers=HEADERS_MAX,
            lingering_time=LINGER,
            auto_decompress=False,  # bodies are only ever dropped
        )

    def admit(self, holder: Connection | Handshake, peer: Any) -> bool:
        """Count a new connection; False when a cap is reached. ``peer``: its address, as sockets tell it."""
        if len(self._open) + len(self._shaking) >= self.listen.max_connections:
            self.stats.connections_refused += 1
            return False
        address = address_of(peer)
        if not self._addresses.take(address):
            self.stats.connections_refused_by_address += 1
            return False
        if isinstance(holder, Connection):
            self._open[holder] = address
            self._is_empty.clear()
        else:
            self._shaking[holder] = address
        self.stats.connections = len(self._open) + len(self._shaking)
        return True

    def release(self, holder: Connection | Handshake) -> None:
        held: dict[Any, bytes] = self._open if isinstance(holder, Connection) else self._shaking
        address = held.pop(holder, None)
        if address is not None:
            self._addresses.give_back(address)
        self.stats.connections = len(self._open) + len(self._shaking)
        if not self._open:
            self._is_empty.set()

    def sweep(self, now: float) -> None:
        """Cut the connections that are overdue. ``now`` is monotonic seconds."""
        for connection in tuple(self._open):
            match connection.overdue(now, self.listen):
                case None:
                    continue
                case "header_timeout":
                    self.stats.header_timeouts += 1
                case "write_stall":
                    self.stats.write_stalls += 1
            connection.cut_off()

    def close_when_answered(self) -> None:
        """End every connection: the idle now, the others after the running answer."""
        for connection in tuple(self._open):
            connection.close_when_answered()

    async def drain(self, seconds: float) -> None:
        """Close what is idle, let running answers finish for ``seconds``, then cut what is left."""
        self.close_when_answered()
        try:
            await asyncio.wait_for(self._is_empty.wait(), seconds)
        except TimeoutError:
            for connection in tuple(self._open):
                connection.cut_off()
            await self.shutdown(LINGER)
        self.files.clear()


def _receive_little(transport: Any) -> None:
    """asyncio makes room for 256 KiB at each read; a request has hundreds of bytes."""
    if hasattr(transport, "max_size"):
        transport.max_size = RECEIVE


def path_of(message: RawRequestMessage) -> str:
    """A request's path for a log line: printable ASCII, bounded, without the query."""
    path = message.path.partition("?")[0]
    shown = ascii(path[:PATH_SHOWN])[1:-1]
    return shown if len(path) <= PATH_SHOWN else f"{shown}… ({len(path)} characters)"


def _answer_to(exc: BaseException | None) -> Prepared:
    match exc:
        case LineTooLong():
            return TOO_LONG
        case BadHttpMethod():
            return BAD_METHOD
        case InvalidURLError():
            return BAD_TARGET
        case InvalidHeader():
            return BAD_HEADER
    return MALFORMED
