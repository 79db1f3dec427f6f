"""Connections that are kept between requests, and the proof that one may be used again.

Invariant: no byte that came before a request was sent is read as its answer. HTTP/1.1 knows whose answer it
reads by order alone (RFC 9112 9.2), so one stray piece (the body of a 304, more than its Content-Length)
shifts every later answer on its connection by one. aiohttp looks at a connection when it is given back; what
comes after that is seen here.

What comes between a request and its answer cannot be told from the answer by anybody: who must not get each
other's answers needs connectors of their own.

Nor does what a server sends hold up the event loop: a read of 256 KiB can hold 40,000 chunks of a byte, or
9,000 interim answers, which take aiohttp a third of a second. It is parsed in pieces, and others have their
turn in between; a body of a length that the head has told is copied, not parsed, and passed on as it comes.
A connection whose bytes cost more than any answer's do has a hundredth of the loop's time: it is read no
further meanwhile, so a flood runs into its deadline, and nobody else waits for it.

Whoever wants a body whole, and was told its length, has it put into its place as it is read (``whole_body``):
no parser sees it, and one wake-up is all it takes.
"""

from __future__ import annotations

import asyncio
import io
import logging
import re
import select
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.streams import StreamReader
from aiohttp.tracing import Trace

logger: Final = logging.getLogger(__name__)

_SAYS_GOODBYE: Final = (b"HTTP/1.1 408", b"HTTP/1.0 408")
"""What some servers say before they close an idle connection (net/http/transport.go of Go, is408Message)."""

PIECE: Final = 2 * 1024  # bytes that are parsed before anybody looks how long it took

TURN: Final = 0.001
"""Seconds of parsing after which the event loop has its turn."""

_HEAD: Final = re.compile(rb"HTTP/1\.[01] 200 [^\r\n]*\r\n((?:[^\r\n]+\r\n){1,64})\r\n")
_LENGTH: Final = re.compile(rb"^content-length:[ \t]*([0-9]{1,18})[ \t]*\r$", re.MULTILINE)
_HEAD_MAX: Final = 8 * 1024
"""Bytes of a head that is looked into."""

PLAIN: Final = 64 * 1024 * 1024
"""Bytes for which a second of the processor is not too much: a chunk or a message for each hundred. Chunks of
a byte and interim answers have a quarter of that, documents fifty times as many."""

REST: Final = 100
"""How much longer than its parsing took a connection waits whose bytes cost more. Whoever reads what was
parsed, a message or a chunk at a time, takes several times as long again."""

DEBT: Final = 0.001
"""Seconds that it may cost more before it waits."""

LONG: Final = 32 * 1024
"""Bytes that are missing of a body which is worth a place of its own."""

MUCH: Final = 32 * 1024
"""Bytes of a read behind which others have a turn: uvloop takes 32 reads of a socket in one."""

_CONDITIONS: Final = ("If-None-Match", "If-Modified-Since")

OnStray = Callable[[], None]


class CheckedConnector(aiohttp.TCPConnector):
    """Closes a kept connection on which anything came, or that ended, since its last answer.

    Whoever was seen to send more than its answers gets a new connection for every request from then on.
    """

    def __init__(self, *, keeps_after_no_body: bool = True, **options: Any) -> None:
        """``keeps_after_no_body``: also after requests whose answer may have no body by rule (HEAD, 304),
        where servers most often send one nevertheless."""
        super().__init__(**options)
        self._keeps_after_no_body = keeps_after_no_body
        self._is_distrusted = False

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        """Raises aiohttp.ClientConnectionError where the server speaks before it was asked."""
        while True:
            connection = await super().connect(req, traces, timeout)
            protocol, transport = connection.protocol, connection.transport
            if protocol is None or transport is None:  # it was lost as it was made
                return connection
            line = transport.get_protocol()
            was_kept = isinstance(line, _Line)
            if not isinstance(line, _Line):
                line = _Line(transport, protocol, self._distrust)
                transport.set_protocol(line)
            if not protocol.should_close and not (was_kept and _has_unread(transport)):
                break
            connection.close()
            if not was_kept:
                raise aiohttp.ClientConnectionError("it answered before it was asked")
        if self._is_distrusted or not (self._keeps_after_no_body or _has_body(req)):
            protocol.force_close()
        line.begin(has_body=req.method != "HEAD")
        connection.add_callback(line.rest)
        return connection

    def _distrust(self) -> None:
        if not self._is_distrusted:
            self._is_distrusted = True
            logger.warning("a server sent more than its answers: none of its connections is used twice")


class _Line(asyncio.Protocol):
    """Stands between a transport and aiohttp's protocol for as long as the connection lasts."""

    def __init__(self, transport: asyncio.Transport, protocol: ResponseHandler, on_stray: OnStray) -> None:
        self._transport = transport
        self._protocol = protocol
        self._on_stray = on_stray
        self._unparsed: deque[bytes] = deque()
        """While there is any, nothing more is read."""
        self._ends: list[Callable[[], None]] = []
        """What is to be told of the connection's end once all is parsed."""
        self._debt = 0.0
        """Seconds that parsing took beyond what as many plain bytes take."""
        self.is_resting = False
        """It is between two requests: every byte is one too many."""
        self._awaits_head = False
        self._copied = 0
        """Bytes of the answer that are still to come and take no parsing."""
        self._holds = False
        self._is_held = False

    def begin(self, *, has_body: bool) -> None:
        """A request is about to be sent. ``has_body``: its answer has one by rule."""
        self.is_resting = False
        self._awaits_head = has_body
        self._copied = 0
        self._holds = self._is_held = False

    def rest(self) -> None:
        """Its request has its answer, or was given up."""
        self.is_resting = True
        if not self._unparsed:
            return
        if self._is_answered():
            self._stray(b"")
        else:  # what is left belongs to the answer that nobody waits for any more
            self._cut_off()

    def hold_back(self) -> None:
        """Read no more than the beginning of a long body of a told length, until somebody says where the
        rest goes. Not over TLS: what follows a body may be here already, and nobody could tell."""
        self._holds = self._transport.get_extra_info("ssl_object") is None

    def missing(self) -> int:
        """Bytes of the body that is held back; 0: none is."""
        return self._copied if self._is_held else 0

    def go_on(self) -> None:
        """Read what is held back."""
        self._is_held = False
        self._transport.resume_reading()
        self._protocol.start_timeout()

    def start_timeout(self) -> None:
        """Something came."""
        self._protocol.start_timeout()

    def data_received(self, data: bytes) -> None:
        if self.is_resting:
            if not self._transport.is_closing():  # TLS passes on what came before its end
                self._stray(data)
        elif self._unparsed or self._debt > DEBT:
            self._unparsed.append(data)
            self._transport.pause_reading()  # aiohttp let it go on
        else:
            self._parse(data)
            if self._unparsed or self._debt > DEBT:
                self._transport.pause_reading()
                self._wait()
            elif self._holds and self._copied >= LONG and not self._transport.is_closing():
                self._is_held = True
                self._transport.pause_reading()
                self._protocol._drop_timeout()  # noqa: SLF001  it is not the server that is waited for
            elif len(data) >= MUCH and not self._transport.is_closing():
                self._transport.pause_reading()
                self._wait()

    def eof_received(self) -> None:
        self._end(self._protocol.eof_received)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end(lambda: self._protocol.connection_lost(exc))

    def pause_writing(self) -> None:
        self._protocol.pause_writing()

    def resume_writing(self) -> None:
        self._protocol.resume_writing()

    def _is_answered(self) -> bool:
        content = self._protocol._payload  # noqa: SLF001
        return content is not None and content.is_eof()

    def _stray(self, data: bytes) -> None:
        if not data.startswith(_SAYS_GOODBYE):
            self._on_stray()
        self._cut_off()

    def _cut_off(self) -> None:
        self._unparsed.clear()
        self._protocol.close()
        self._tell_ends()

    def _end(self, tell: Callable[[], None]) -> None:
        self._ends.append(tell)
        if not self._unparsed:
            self._tell_ends()

    def _tell_ends(self) -> None:
        while self._ends:
            self._ends.pop(0)()

    def _parse(self, data: bytes) -> None:
        """Pass on what can be parsed in a turn, and leave the rest for the next."""
        if self._awaits_head:
            self._awaits_head = False
            self._copied = _told_length(data)
        began = time.thread_time()
        start = min(self._copied, len(data))
        size = PIECE
        if start:
            self._copied -= start
            self._protocol.data_received(data if start == len(data) else data[:start])
        while start < len(data):
            if start and self.is_resting:
                self._stray(b"")
                return
            if start and time.thread_time() - began > TURN:
                self._unparsed.appendleft(data[start:])
                break
            self._protocol.data_received(data[start : start + size])
            start, size = start + size, size * 2
        took = time.thread_time() - began
        self._debt = max(0.0, self._debt + took - min(start, len(data)) / PLAIN)

    def _wait(self) -> None:
        """Until its next turn."""
        loop = asyncio.get_running_loop()
        if self._debt > DEBT:
            loop.call_later(REST * self._debt, self._go_on)
        else:
            loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        if self._debt > DEBT:
            self._debt = 0.0
        if self._protocol.transport is None:  # aiohttp has closed it
            self._unparsed.clear()
        if self._unparsed:
            self._parse(self._unparsed.popleft())
        if self._unparsed or self._debt > DEBT:
            self._wait()
            return
        self._tell_ends()
        if not self._protocol._reading_paused and not self._transport.is_closing():  # noqa: SLF001
            self._transport.resume_reading()


class _Filling(asyncio.BufferedProtocol):
    """Stands in for a line while the rest of a body is read into its place, no byte more."""

    def __init__(self, transport: asyncio.Transport, line: _Line, content: StreamReader) -> None:
        """``content`` is told of the end, and of what keeps it from coming."""
        self._transport = transport
        self._line = line
        self._content = content
        self._room = memoryview(b"")

    def begin(self, room: memoryview) -> None:
        self._room = room
        self._transport.set_protocol(self)
        self._line.go_on()

    def end(self) -> None:
        """Whatever comes from here on is the line's."""
        self._room = memoryview(b"")
        if self._transport.get_protocol() is not self:
            return
        # uvloop asks what kind of protocol it reads for only when it begins to read.
        is_open = not self._transport.is_closing()
        if is_open:
            self._transport.pause_reading()
        self._transport.set_protocol(self._line)
        if is_open:
            self._transport.resume_reading()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        self._room = self._room[nbytes:]
        if self._room:
            self._line.start_timeout()
        else:
            self.end()
            self._content.feed_eof()

    def eof_received(self) -> None:
        self._line.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._line.connection_lost(exc)

    def pause_writing(self) -> None:
        self._line.pause_writing()

    def resume_writing(self) -> None:
        self._line.resume_writing()


def hold_back(connection: Connection) -> None:
    """Before a request is sent whose answer is taken by ``whole_body``, or not read to its end."""
    transport = connection.transport
    line = None if transport is None else transport.get_protocol()
    if isinstance(line, _Line):
        line.hold_back()


async def whole_body(connection: Connection | None, content: StreamReader, length: int) -> bytes:
    """The body of an answer. ``length``: its Content-Length, which alone tells where it ends (RFC 9112 6.3).
    Raises what reading ``content`` does."""
    first = content.read_nowait()
    if content.at_eof():
        return first
    body = io.BytesIO(bytes(length))  # getvalue() does not copy it, and zeroes nobody touches take no memory
    with body.getbuffer() as room:
        room[: len(first)] = first
        transport = None if connection is None else connection.transport
        line = None if transport is None else transport.get_protocol()
        missing = line.missing() if isinstance(line, _Line) else 0
        if missing and transport is not None and isinstance(line, _Line):
            if len(first) + missing == length:
                await _filled(transport, line, content, room[len(first) :])
                return body.getvalue()
            line.go_on()
        at = len(first)
        async for chunk in content.iter_any():
            room[at : at + len(chunk)] = chunk
            at += len(chunk)
    return body.getvalue()


async def _filled(transport: asyncio.Transport, line: _Line, content: StreamReader, room: memoryview) -> None:
    filling = _Filling(transport, line, content)
    filling.begin(room)
    try:
        await content.readany()
    finally:
        filling.end()


def _told_length(data: bytes) -> int:
    """Bytes of the answer that begins so, where its head is here and tells them; 0 where anything is unusual.

    aiohttp decides where a body ends: a server that makes it see another end than this gets one read parsed
    in one piece.
    """
    head = _HEAD.match(data, 0, _HEAD_MAX)
    if head is None:
        return 0
    fields = head[1].lower()
    lengths = _LENGTH.findall(fields)
    if len(lengths) != 1 or b"transfer-encoding" in fields:
        return 0
    return head.end() + int(lengths[0])


def _has_unread(transport: asyncio.Transport) -> bool:
    """Whether something came, or the end, that the event loop has not been told of yet."""
    if not transport.is_reading():
        return True
    wire = transport.get_extra_info("socket")
    if not hasattr(select, "poll"):  # Windows, where there is no limit to the number of a socket
        return bool(select.select([wire], [], [], 0)[0])
    poll = select.poll()
    poll.register(wire, select.POLLIN)
    return bool(poll.poll(0))


def _has_body(req: aiohttp.ClientRequest) -> bool:
    return req.method != "HEAD" and not any(name in req.headers for name in _CONDITIONS)
