"""Input of a client that is not taken up yet: bytes, parsed into messages by aiohttp's parser, in a queue.

Invariant: at a message boundary the parser is in its initial state, so a request answered without it leaves
no trace. The parser is given one head at a time: when it raises, it returns nothing of that input, so
requests before a fault are answered however the bytes were split. After a fault in the framing all further
input is dropped.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from aiohttp import hdrs
from aiohttp.http import HttpRequestParser, RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader

from specmux_aggregator.server.input_limits import (
    END_OF_HEAD,
    HEAD_MAX,
    PAUSE_AT,
    HeadTooLarge,
    HeldByAll,
    HeldBytes,
)
from specmux_aggregator.server.refusals import LINE_MAX, NotHTTP

HEADERS_MAX: Final = 128
QUEUE_MAX: Final = 32
"""Queued messages at which parsing stops; it continues once half of them are taken up."""
RECEIVE: Final = 16 * 1024
"""Bytes parsed at once, and read from a socket at once."""
TURN_MAX: Final = 64
"""Heads of one connection parsed in one turn of the event loop: 16 KiB can hold 500, and every other
connection would wait for their answers."""
BODY_BUFFER: Final = 32 * 1024  # bytes of a request body (up to twice as many) before reading pauses

OTHER_PROTOCOL: Final = re.compile(rb"(?:\r\n)*[A-Z_-]+ [^\s]+ (?:RTSP|ICE)/")
"""The request line of a protocol that llhttp accepts as HTTP."""

Parsed = tuple[RawRequestMessage, StreamReader]
Queued = tuple[RawRequestMessage | HttpProcessingError, StreamReader]
"""A message with its body, or the error in its place."""


class Incoming:
    """The input of one connection."""

    __slots__ = (
        "_body_left",
        "_connection",
        "_end",
        "_is_due",
        "_line",
        "_parser",
        "_payload",
        "_rest",
        "head_since",
        "held",
        "is_at_boundary",
        "is_deaf",
        "is_full",
        "messages",
        "taken",
    )

    def __init__(self, connection: Any, held_by_all: HeldByAll) -> None:
        """``connection``: has ``pause_reading`` and ``resume_reading``, called while a body waits, and
        ``connected``."""
        self.held = HeldBytes(held_by_all)
        self.messages: list[Queued] = []
        self.taken = 0
        """Messages taken up or answered at once."""
        self.head_since = time.monotonic()
        """Monotonic seconds since when the head of a request is awaited; 0: none has begun."""
        self.is_at_boundary = True
        self.is_deaf = False
        self.is_full = False
        """The queue is full and not yet half empty, or the turn is over; nothing more is read."""
        self._is_due = False
        self._rest = b""
        """Input kept back, unparsed, for that reason."""
        self._body_left = 0
        """Bytes missing of a body of known length."""
        self._end = b""
        """The last bytes of an incomplete head, or of a piece of a body."""
        self._payload: StreamReader = EMPTY_PAYLOAD
        """The body of the newest message."""
        self._line = b""
        """The request line of an incomplete head as received so far, or a mark that it was complete."""
        self._connection = connection
        self._parser: HttpRequestParser | None = None
        """Created for the first request that the memo does not know."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing waits to be taken up."""
        return not self.messages and not self._rest

    @property
    def is_too_much(self) -> bool:
        """Whether reading should pause until something is taken up."""
        return self.is_full or (bool(self.messages) and self.held.cost > PAUSE_AT)

    def pieces(self, data: bytes) -> Iterable[bytes]:
        """Split ``data`` so that a head ends at the end of a piece or not at all; parse each piece before
        asking for the next. Ends early after a fault; what exceeds the queue or the turn is kept back."""
        if self._end or self._body_left or self.is_full or len(data) > RECEIVE:
            return self._pieces(data)
        is_one = data.endswith(END_OF_HEAD) and data.find(END_OF_HEAD) == len(data) - len(END_OF_HEAD)
        return (data,) if is_one else self._pieces(data)

    def _pieces(self, data: bytes) -> Iterator[bytes]:
        begin = count = 0
        while begin < len(data) and not self.is_deaf:
            if self.is_full or count == TURN_MAX or begin >= RECEIVE:
                self.is_full, self.is_at_boundary = True, False
                self._rest += data[begin:]
                self.held.keep(len(self._rest))
                return
            count += 1
            end = min(self._end_of_piece(data, begin), begin + RECEIVE)
            piece = data[begin:end]
            if self._body_left:
                self._body_left -= len(piece)
            self._end = b"" if piece.endswith(END_OF_HEAD) else (self._end + piece)[1 - len(END_OF_HEAD) :]
            yield piece
            begin = end

    def _end_of_piece(self, data: bytes, begin: int) -> int:
        if self._body_left:
            return begin + self._body_left
        if self._end:  # the end of a head split over two pieces
            at = (self._end + data[begin : begin + len(END_OF_HEAD) - 1]).find(END_OF_HEAD)
            if at >= 0:
                return begin + at + len(END_OF_HEAD) - len(self._end)
        at = data.find(END_OF_HEAD, begin)
        return len(data) if at < 0 else at + len(END_OF_HEAD)

    def parse(self, piece: bytes) -> Sequence[Parsed]:
        """The message whose head ends with ``piece``, if any, to be answered at once or queued."""
        try:
            self._look_at_line(piece)
            parser = self._parser
            if parser is None:
                parser = self._parser = _parser_for(self._connection)
            messages, is_upgraded, _ = parser.feed_data(piece)
        except HttpProcessingError as error:
            self._break(error)
            return ()
        self.is_deaf = is_upgraded
        parsed: Sequence[Parsed] = messages
        return parsed

    def is_alone(self, piece: bytes, messages: Sequence[Parsed]) -> bool:
        """Whether ``piece`` ends a message without a body and nothing else waits."""
        return (
            len(messages) == 1
            and messages[0][1] is EMPTY_PAYLOAD
            and not self.messages
            and self.held.head + len(piece) <= HEAD_MAX
        )

    def note_answered(self) -> None:
        """Note that the only message was answered and the connection continues."""
        self.taken += 1
        self.head_since = 0.0
        self.is_at_boundary = not self.is_deaf
        if self.held.head:
            self.held.clear()

    def queue(self, piece: bytes, messages: Sequence[Parsed]) -> None:
        """Queue the message that ended with ``piece`` and count its cost."""
        if self.messages and isinstance(self.messages[-1][0], HttpProcessingError):
            return
        self.is_at_boundary = False
        try:
            self.held.take(piece, messages, len(self.messages))
        except HeadTooLarge as error:
            self._break(error)
            return
        if messages:
            self.messages.extend(messages)
            message, self._payload = messages[-1]
            self.is_full = len(self.messages) >= QUEUE_MAX
            is_whole = self._payload is EMPTY_PAYLOAD
            if not (is_whole or message.chunked):
                self._body_left = int(message.headers.get(hdrs.CONTENT_LENGTH, 0))  # absent with CONNECT
            self.is_at_boundary = is_whole and not self.is_deaf and not self.is_full
            # A body: after it, the next head is due within the header timeout.
            self.head_since = 0.0 if is_whole else time.monotonic()
        elif not self.head_since:
            self.head_since = time.monotonic()

    def take(self) -> Queued:
        """Remove and return the next message."""
        self.taken += 1
        return self.messages.pop(0)

    def falls_due(self) -> bool:
        """Whether to schedule ``refill`` for the next turn; True once."""
        has_room = self.is_full and len(self.messages) <= QUEUE_MAX // 2 and not self.is_deaf
        if not has_room or self._is_due:
            return False
        self._is_due = True
        return True

    def refill(self) -> bytes:
        """Return the input that was kept back."""
        self.is_full = self._is_due = False
        rest, self._rest = self._rest, b""
        if rest:
            self.held.keep(0)
        return rest

    def count(self, *, is_answered: bool) -> None:
        """Release the cost of messages taken up; the last one stays counted until ``is_answered``."""
        if self.held.cost:
            self.held.set_waiting(len(self.messages) - is_answered)

    def clear(self) -> None:
        """Drop everything that waits, and ignore further input."""
        self.is_deaf = True
        self.messages.clear()
        self._rest = b""
        self.held.clear()

    def end(self) -> None:
        """Release everything: no more data follows. Without the back references the connection is freed at
        once instead of by the garbage collector."""
        self._parser = self._connection = None
        if self.messages or self._rest or self.held.cost:
            self.clear()
        else:
            self.is_deaf = True

    def _look_at_line(self, piece: bytes) -> None:
        """Raises NotHTTP for a request line that looks like HTTP and names another protocol."""
        if not self._payload.is_eof():
            return
        begun = self._line + piece if self.held.head else piece
        if (b" RTSP/" in begun or b" ICE/" in begun) and OTHER_PROTOCOL.match(begun):
            raise NotHTTP
        if not piece.endswith(END_OF_HEAD):
            # Keep the request line while it is incomplete; afterwards only a mark.
            self._line = begun if b"\n" not in begun.lstrip() else b"\0"

    def _break(self, error: HttpProcessingError) -> None:
        """Stop parsing: the framing is lost, or the head is too large."""
        self.is_deaf = True
        self.is_at_boundary = False
        if isinstance(error, HeadTooLarge):
            self.held.clear()
        if not self._payload.is_eof():
            self._payload.set_exception(BrokenBody("the framing of the body is broken"))
        self.messages.append((error, EMPTY_PAYLOAD))


class BrokenBody(Exception):
    """The framing of a request's body is invalid."""


def _parser_for(connection: Any) -> HttpRequestParser:
    return HttpRequestParser(
        connection,
        asyncio.get_running_loop(),
        BODY_BUFFER,
        max_line_size=LINE_MAX,
        max_field_size=LINE_MAX,
        max_headers=HEADERS_MAX,
        payload_exception=BrokenBody,
        auto_decompress=False,  # bodies are passed on unchanged, or dropped
    )
