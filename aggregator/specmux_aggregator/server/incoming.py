"""What came from a client and is not taken up yet: bytes made messages by aiohttp's parser, in a queue.

Invariant: at a boundary the parser is in the state in which it began, so a request that is answered without
it leaves no trace. Once nothing can be made of what comes, everything else is dropped.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from collections.abc import Sequence
from typing import Any, Final

from aiohttp.http import HttpRequestParser, RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader
from aiohttp.web import RequestPayloadError

from specmux_aggregator.server.held import (
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
"""Messages that wait until the parser stops; it goes on once half of them are taken up."""
BODY_BUFFER: Final = 32 * 1024  # bytes of a request's body that wait, or twice as many, before reading stops

OTHER_PROTOCOL: Final = re.compile(rb"(?:\A|\r\n\r\n)(?:\r\n)*[A-Z_-]+ [^\s]+ (?:RTSP|ICE)/")
"""The request line of a protocol that llhttp takes for HTTP."""
HAS_BODY: Final = re.compile(rb"(?i)\n(?:content-length|transfer-encoding):")

Parsed = tuple[RawRequestMessage, StreamReader]
Queued = tuple[RawRequestMessage | HttpProcessingError, StreamReader]
"""A message with its body, or why there is none."""


class Incoming:
    """Of one connection."""

    __slots__ = (
        "_line",
        "_parser",
        "_payload",
        "head_since",
        "held",
        "is_at_boundary",
        "is_deaf",
        "is_full",
        "messages",
        "taken",
    )

    def __init__(self, connection: Any, held_by_all: HeldByAll) -> None:
        """``connection`` is told to read on or not while a body waits: ``pause_reading``,
        ``resume_reading``; and asked whether it is ``connected``."""
        self.held = HeldBytes(held_by_all)
        self.messages: deque[Queued] = deque()
        self.taken = 0
        """Messages that were taken up, or answered at once."""
        self.head_since = time.monotonic()
        """Monotonic seconds since when the head of a request is awaited; 0: none has begun."""
        self.is_at_boundary = True
        self.is_deaf = False
        self.is_full = False
        """As many messages wait as the parser lets out."""
        self._payload: StreamReader = EMPTY_PAYLOAD
        """The body of the message that came last."""
        self._line = b""
        """The request line of a head that is not whole, as far as it has come; or that it has."""
        self._parser = HttpRequestParser(
            connection,
            asyncio.get_running_loop(),
            BODY_BUFFER,
            max_line_size=LINE_MAX,
            max_field_size=LINE_MAX,
            max_headers=HEADERS_MAX,
            payload_exception=RequestPayloadError,
            auto_decompress=False,  # bodies are passed on as they are, or dropped
            max_msg_queue_size=QUEUE_MAX,
        )

    @property
    def is_too_much(self) -> bool:
        """Nothing more should be read until something is taken up."""
        return self.is_full or (bool(self.messages) and self.held.cost > PAUSE_AT)

    def parse(self, data: bytes) -> Sequence[Parsed]:
        """The messages whose heads end within ``data``, to be answered at once or queued."""
        try:
            self._look_at_line(data)
            messages, is_upgraded, _ = self._parser.feed_data(data)
        except HttpProcessingError as error:
            self._break(error)
            return ()
        self.is_deaf = is_upgraded
        parsed: Sequence[Parsed] = messages
        return parsed

    def is_alone(self, data: bytes, messages: Sequence[Parsed]) -> bool:
        """Whether what came ends one message without a body, and nothing else is there."""
        return (
            len(messages) == 1
            and messages[0][1] is EMPTY_PAYLOAD
            and not self.messages
            and data.endswith(END_OF_HEAD)
            and self.held.head + len(data) <= HEAD_MAX
        )

    def answered_at_once(self) -> None:
        """The message that was alone was answered, and the connection goes on."""
        self._parser.message_consumed()
        self.taken += 1
        self.head_since = 0.0
        self.is_at_boundary = not self.is_deaf
        if self.held.head:
            self.held.clear()

    def queue(self, data: bytes, messages: Sequence[Parsed]) -> None:
        """Keep the messages that ended within ``data``, and count what it takes."""
        if self.messages and isinstance(self.messages[-1][0], HttpProcessingError):
            return
        self.is_at_boundary = False
        try:
            self.held.taken(len(self.messages))
            self.held.take(data, messages)
        except HeadTooLarge as error:
            self._break(error)
            return
        if messages:
            self.messages.extend(messages)
            self._payload = messages[-1][1]
            self.is_full = len(self.messages) >= QUEUE_MAX
            is_whole = self._payload is EMPTY_PAYLOAD and data.endswith(END_OF_HEAD)
            self.is_at_boundary = is_whole and not self.is_deaf and not self.is_full
            # A body, or the start of another head: after a request with a body, the next head is due within
            # the header timeout.
            self.head_since = 0.0 if is_whole else time.monotonic()
        elif data and not self.head_since:
            self.head_since = time.monotonic()

    def take(self) -> Queued:
        """The next message."""
        item = self.messages.popleft()
        self.taken += 1
        if not isinstance(item[0], HttpProcessingError):
            self._parser.message_consumed()
        return item

    def refill(self) -> bool:
        """Let the parser go on with what it has kept, if there is room; False: there is nothing to do."""
        if not self.is_full or len(self.messages) > QUEUE_MAX // 2 or self.is_deaf:
            return False
        self.is_full = False
        self.queue(b"", self.parse(b""))
        return True

    def count(self, *, is_answered: bool) -> None:
        """Let go of what is counted of messages that were taken up; the last of them is still held unless it
        is answered."""
        if self.held.cost:
            self.held.taken(len(self.messages) - is_answered)

    def clear(self) -> None:
        """Nothing that waits will be taken up."""
        self.is_deaf = True
        self.messages.clear()
        self.held.clear()

    def _look_at_line(self, data: bytes) -> None:
        """Raises NotHTTP for what has the form of HTTP and says that it is something else."""
        if not self._payload.is_eof():
            return
        if not self.held.head:
            self._line = b""
        begun = self._line + data if self._line else data
        if b" RTSP/" in begun or b" ICE/" in begun:
            found = OTHER_PROTOCOL.search(begun)
            # Behind another request it is a line only where that has no body.
            if found and (found.start() == 0 or not (self._line or HAS_BODY.search(begun, 0, found.start()))):
                raise NotHTTP
        if not data.endswith(END_OF_HEAD):
            # Of the line, if that is not whole; else only that it is over.
            self._line = begun if b"\n" not in begun.lstrip() else b"\0"

    def _break(self, error: HttpProcessingError) -> None:
        """No more messages can come: the framing is lost, or the head too large."""
        self.is_deaf = True
        self.is_at_boundary = False
        if isinstance(error, HeadTooLarge):
            self.held.clear()
        if not self._payload.is_eof():
            self._payload.set_exception(RequestPayloadError("the framing of the body is broken"))
        self.messages.append((error, EMPTY_PAYLOAD))
