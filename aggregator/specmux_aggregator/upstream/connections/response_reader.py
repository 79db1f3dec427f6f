"""Feed received bytes to the response parser; reject unsolicited bytes and bound parsing time.

Invariant: nothing that comes between two requests reaches the parser; ``on_stray`` is called, and the
connection is closed.
"""

# Theory of operation
#
# aiohttp's parser decides what an answer is. This module decides which bytes it gets, and when. A
# connection is in one of three states: a request runs, an answer waits for room or for its turn, or it
# rests.
#
# At rest every byte is one too many. It could be the beginning of a smuggled answer, so it never reaches
# the parser: the connection is closed and ``on_stray`` tells the connector, which stops to reuse
# connections to that server. The exception is a 408, the goodbye of some servers to an idle connection.
#
# The parser must not hold up the event loop. A read of 256 KiB can hold 40,000 chunks of a byte or 9,000
# interim answers, which take it a third of a second. So a read is parsed in pieces of doubling size; after
# TURN the rest is kept in ``_unparsed``, and others have their turn. While anything is kept, the socket is
# not read: the kernel's window bounds what a server can send ahead.
#
# ``_debt`` is the time that parsing took beyond what as many plain bytes take (PLAIN). A connection that
# owes more than DEBT waits REST times as long as it owes. A flood therefore gets a hundredth of the loop's
# time and runs into its deadline, while a document, at fifty times that speed, never waits. Bytes of a body
# whose length the head stated take no parsing (``stated_length``), and are fed whole.
#
# ``hold_back`` serves large bodies: after the head, reading stops until somebody says where the rest goes,
# which then comes by ``recv_into``. Not over TLS, where bytes after the body may be decrypted already.
#
# What must never happen: an answer given to another request; a read that takes the loop for longer than a
# few milliseconds; a connection reused after it was cut off in the midst of an answer.

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from collections.abc import Callable
from typing import Any, Final, cast

from aiohttp import ClientConnectionError, ClientOSError, ServerDisconnectedError, SocketTimeoutError
from aiohttp.base_protocol import BaseProtocol
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage
from aiohttp.streams import StreamReader

from specmux_aggregator.upstream.connections.parsed_messages import ParsedMessages, SilenceTimer

_LENGTH: Final = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,18})[ \t]*\r\n")
_HEAD_MAX: Final = 8 * 1024
"""Bytes of the largest head that is examined."""


def stated_length(data: bytes) -> int:
    """Bytes of the answer that starts with ``data``, if its head is complete and states them; 0 if anything
    is unusual.

    The parser decides where a body ends: if a server makes it differ from this result, one read is parsed in
    one piece.
    """
    end = data.find(b"\r\n\r\n", 0, _HEAD_MAX)
    if end < 0 or not data.startswith((b"HTTP/1.1 200 ", b"HTTP/1.0 200 ")):
        return 0
    head = data[: end + 2].lower()
    length = _LENGTH.search(head)
    if length is None or head.count(b"\r\ncontent-length") != 1 or b"transfer-encoding" in head:
        return 0
    return end + 4 + int(length[1])


_SAYS_GOODBYE: Final = (b"HTTP/1.1 408", b"HTTP/1.0 408")
"""The answer of some servers before they close an idle connection (net/http/transport.go of Go,
is408Message)."""

PIECE: Final = 2 * 1024  # bytes that are parsed before anybody looks how long it took

TURN: Final = 0.001
"""Seconds of parsing after which the event loop has its turn."""

PLAIN: Final = 64 * 1024 * 1024
"""Bytes for which a second of the processor is not too much: a chunk or a message for each hundred. Chunks of
a byte and interim answers have a quarter of that, documents fifty times as many."""

REST: Final = 100
"""How much longer than its parsing took a connection waits whose bytes cost more. Whoever reads what was
parsed, a message or a chunk at a time, takes several times as long again."""

DEBT: Final = 0.001
"""Seconds that it may cost more before it waits."""

READ: Final = 256 * 1024
"""Bytes for which asyncio makes room at each read, unless it is given another number."""

READ_HEAD: Final = 64 * 1024
"""The same where what follows the head has a place of its own: most documents, whole. Room from 128 KiB on is
asked of the kernel at each read and given back, page by page."""

LONG: Final = 32 * 1024
"""Bytes that are missing of a body which is worth a place of its own."""

ENCRYPTED: Final = 16 * 1024
"""Bytes that may wait to be decrypted while reading is paused. Of 256 KiB, asyncio's own bound, one turn
would decrypt all."""

OnStray = Callable[[], None]


class ResponseReader(BaseProtocol):
    """Reads the answers of one connection, from its first byte to its end.

    aiohttp's connectors, sessions and writers take it for their own kind of protocol.
    """

    def __init__(self, on_stray: OnStray) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(loop)
        self._timer = SilenceTimer(loop, self._fall_silent)
        self._messages = ParsedMessages(self, self._timer)
        self._on_stray = on_stray
        self._is_encrypted = False
        self._unparsed: deque[bytes] = deque()
        """While there is any, nothing more is read."""
        self._loss: BaseException | None = None
        """The end of the connection, once all is parsed."""
        self._is_lost = self._is_over = False
        """It is lost; and that was acted on."""
        self._ended: asyncio.Future[None] | None = None
        self._debt = 0.0
        """Seconds that parsing took beyond what as many plain bytes take."""
        self._is_waiting = False
        """Its next turn is to come."""
        self._is_full = False
        """Whether a body has as many waiting bytes as it may."""
        self._holds = self._is_held = False
        self.is_resting = False
        """It is between two requests: every byte is one too many."""
        self._is_silent = True
        """Nothing of an answer has come; the message is the one before."""
        self._awaits_head = False
        self._copied = 0
        """Bytes of the answer that are still to come and take no parsing."""

    # One request after the other.

    def begin(self, *, has_body: bool) -> None:
        """A request is about to be sent. ``has_body``: its answer has one by rule."""
        self.is_resting = False
        self._is_silent = True
        self._awaits_head = has_body
        self._copied = 0
        self._holds = self._is_held = False
        self._make_room(READ)

    def rest(self) -> None:
        """Its request has its answer, or was given up."""
        self.is_resting = True
        self._timer.stop()
        is_answered = self._is_answered()
        if self._unparsed and is_answered:
            self._stray(b"")
        elif self._unparsed:  # what is left belongs to the answer that nobody waits for any more
            self._cut_off()
        if self._is_encrypted and self.transport is not None and (not is_answered or self.should_close):
            # Closed, it would go on to decrypt whatever comes for half a minute, to see a close_notify.
            self.transport.abort()

    def hold_back(self) -> None:
        """Read no more than the beginning of a long body of a told length, until somebody says where the
        rest goes. Not over TLS: what follows a body may be here already, and nobody could tell."""
        self._holds = not self._is_encrypted
        self._make_room(READ_HEAD)

    def count_held_back(self) -> int:
        """Bytes of the body that is held back; 0: none is."""
        return self._copied if self._is_held else 0

    def go_on(self) -> None:
        """Read what is held back."""
        self._is_held = False
        self._read_or_not()
        self._timer.start()

    # What aiohttp's connectors, sessions and bodies ask for.

    def set_response_params(
        self,
        *,
        timer: Any = None,
        skip_payload: bool = False,
        read_timeout: float | None = None,
        read_bufsize: int,
        timeout_ceil_threshold: float = 0,
        **options: Any,
    ) -> None:
        """How the answer to the next request is read. ``timeout_ceil_threshold``: of no meaning here."""
        self._timer.seconds = read_timeout
        self._messages.expect(read_bufsize, has_no_body=skip_payload, timer=timer, **options)

    async def read(self) -> tuple[RawResponseMessage, StreamReader]:
        """The next message, interim ones included. Raises aiohttp.ClientError and HttpProcessingError."""
        return await self._messages.read()

    def start_timeout(self) -> None:
        """Something came, or was sent."""
        self._timer.start()

    def set_exception(self, error: BaseException, cause: BaseException | None = None) -> None:
        """The request cannot be sent."""
        self._messages.fail(error)

    @property
    def should_close(self) -> bool:
        return bool(self._unparsed) or not self._messages.is_reusable

    @property
    def upgraded(self) -> bool:
        return self._messages.is_upgraded

    @property
    def closed(self) -> asyncio.Future[None] | None:
        """The end of the connection, to be waited for: a failure if it was no orderly one. None: it has
        ended, or nobody can wait: Python collects a client that was never closed."""
        if self._ended is None and not self._is_over:
            try:
                self._ended = asyncio.get_running_loop().create_future()
            except RuntimeError:
                return None
        return self._ended

    def is_connected(self) -> bool:
        return self.transport is not None and not self.transport.is_closing()

    def force_close(self) -> None:
        """Use it for no other request."""
        self._messages.is_last = True

    def close(self) -> None:
        if self.transport is not None:
            transport, self.transport = self.transport, None
            self._timer.close()
            transport.close()

    def abort(self) -> None:
        if self.transport is not None:
            transport, self.transport = self.transport, None
            self._timer.close()
            transport.abort()

    def pause_reading(self) -> None:
        """The body has as many waiting bytes as it may."""
        self._is_full = True
        self._read_or_not()
        self._timer.stop()

    def resume_reading(self, resume_parser: bool = True) -> None:
        """There is room again."""
        if not self._is_full:
            return
        self._is_full = False
        if self._unparsed:
            self._wait()
        else:
            self._read_or_not()
        if not self._messages.is_whole:
            self._timer.start()

    # What the transport says.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._is_encrypted = transport.get_extra_info("ssl_object") is not None
        if self._is_encrypted and (limit := getattr(transport, "set_read_buffer_limits", None)) is not None:
            limit(ENCRYPTED)

    def data_received(self, data: bytes) -> None:
        if self.transport is None:  # before TLS has begun, or after it was closed
            self.force_close()
        elif self.is_resting:
            if not self.transport.is_closing():  # TLS passes on what came before its end
                self._stray(data)
        elif self._unparsed or self._is_waiting:
            self._unparsed.append(data)
            self._read_or_not()
        else:
            self._parse(data)
            if self._unparsed or self._owes_time() or self._is_worth_a_turn():
                self._wait()
            elif self._holds and self._copied >= LONG and self.is_connected():
                self._is_held = True
                self._timer.stop()  # it is not the server that is waited for
                self._read_or_not()

    def eof_received(self) -> None:
        self._timer.stop()

    def connection_lost(self, exc: BaseException | None) -> None:
        self._is_lost, self._loss = True, exc
        if not self._unparsed or self.transport is None:
            self._lose()

    def _make_room(self, size: int) -> None:
        if self.transport is not None and hasattr(self.transport, "max_size"):  # of a plain socket
            self.transport.max_size = size

    def _owes_time(self) -> bool:
        """It costs too much to be read on at once. Between two requests there is nothing to read: what comes
        ends it, and a connection that is not read would not be used again."""
        return self._debt > DEBT and not self.is_resting

    def _is_worth_a_turn(self) -> bool:
        """Others have theirs before more is read. Of what comes over TLS nobody can say how many records it
        took, each of which costs as much as a kilobyte."""
        return self._is_encrypted and not self._is_answered()

    def _is_answered(self) -> bool:
        return not self._is_silent and self._messages.is_whole

    def _stray(self, data: bytes) -> None:
        if not data.startswith(_SAYS_GOODBYE):
            self._on_stray()
        self._cut_off()

    def _cut_off(self) -> None:
        self._unparsed.clear()
        if self._is_encrypted:
            self.abort()
        else:
            self.close()
        if self._is_lost:
            self._lose()

    def _fall_silent(self) -> None:
        self._messages.interrupt(SocketTimeoutError("Timeout on reading data from socket"))

    def _parse(self, data: bytes) -> None:
        """Pass on what can be parsed in a turn, and keep the rest for the next."""
        self._is_silent = False
        self._timer.start()
        if self._awaits_head:
            self._awaits_head = False
            self._copied = stated_length(data)
        began = time.thread_time()
        start = min(self._copied, len(data))
        size = PIECE
        if start:
            self._copied -= start
            self._feed(data if start == len(data) else data[:start])
        while start < len(data) and self.transport is not None:
            if start and self.is_resting:
                self._stray(b"")
                return
            if start and (self._is_full or time.thread_time() - began > TURN):
                self._unparsed.appendleft(data[start:])
                break
            self._feed(data[start : start + size])
            start, size = start + size, size * 2
        took = time.thread_time() - began
        self._debt = max(0.0, self._debt + took - min(start, len(data)) / PLAIN)

    def _feed(self, data: bytes) -> None:
        if not self._messages.feed(data) and self.transport is not None:
            self.transport.close()

    def _wait(self) -> None:
        """Until its next turn."""
        if self._is_waiting:
            return
        self._is_waiting = True
        self._read_or_not()
        loop = asyncio.get_running_loop()
        if self._debt > DEBT:
            loop.call_later(REST * self._debt, self._take_turn)
        else:
            loop.call_soon(self._take_turn)

    def _take_turn(self) -> None:
        self._is_waiting = False
        if self._debt > DEBT:
            self._debt = 0.0
        if self.transport is None:  # it was closed
            self._unparsed.clear()
        if self._unparsed and not self._is_full:
            self._parse(self._unparsed.popleft())
        if (self._unparsed and not self._is_full) or self._owes_time():
            self._wait()
        elif self._is_lost and not self._unparsed:
            self._lose()
        else:
            self._read_or_not()

    def _read_or_not(self) -> None:
        if self.transport is None or self.transport.is_closing():
            return
        if self._is_waiting or self._is_held or self._is_full or self._unparsed:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def _lose(self) -> None:
        """Tell whoever waits for anything of the connection that it is lost."""
        if self._is_over:
            return
        self._is_over = True
        self._timer.close()
        loss = self._loss
        begun = self._messages.end(is_clean=loss is None and self.transport is not None, loss=loss)
        error: BaseException = ServerDisconnectedError(begun) if loss is None else loss
        if isinstance(loss, OSError):
            error = ClientOSError(*loss.args)
        if self._messages.error is None:
            self._messages.fail(error)
        self._messages.is_last = True
        if self._ended is not None and not self._ended.done():
            if loss is None:
                self._ended.set_result(None)
            else:
                self._ended.set_exception(ClientConnectionError(f"Connection lost: {loss}"))
        super().connection_lost(error)


def reader_of(connection: Connection | None) -> ResponseReader | None:
    """The reader of a connection of ours; None where it is another's, or lost."""
    reader = None if connection is None else cast(object, connection.protocol)
    return reader if isinstance(reader, ResponseReader) else None
