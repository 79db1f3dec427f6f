"""What comes by a connection, on its way to aiohttp's parser: whose it is, and how fast it is parsed.

Invariant: nothing that comes between two requests reaches the parser; whoever is asked is told of it
(``on_stray``), and the connection is closed.

Nor does what a server sends hold up the event loop: a read of 256 KiB can hold 40,000 chunks of a byte, or
9,000 interim answers, which take aiohttp a third of a second. It is parsed in pieces, and others have their
turn in between; a body of a length that the head has told is copied, not parsed, and passed on as it comes.
A connection whose bytes cost more than any answer's do has a hundredth of the loop's time: it is read no
further meanwhile, so a flood runs into its deadline, and nobody else waits for it.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from collections.abc import Callable
from typing import Final

from aiohttp.client_proto import ResponseHandler

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

READ: Final = 256 * 1024
"""Bytes for which asyncio makes room at each read, unless it is told another number."""

READ_HEAD: Final = 64 * 1024
"""The same where what follows the head has a place of its own: most documents, whole. Room from 128 KiB on is
asked of the kernel at each read and given back, page by page."""

LONG: Final = 32 * 1024
"""Bytes that are missing of a body which is worth a place of its own."""

ENCRYPTED: Final = 16 * 1024
"""Bytes that may wait to be decrypted while reading is paused. Of 256 KiB, which event loops have else, one
turn would decrypt all."""

OnStray = Callable[[], None]


class CheckedProtocol(asyncio.Protocol):
    """Stands between a transport and aiohttp's protocol for as long as the connection lasts."""

    def __init__(self, transport: asyncio.Transport, protocol: ResponseHandler, on_stray: OnStray) -> None:
        self._transport = transport
        self._is_encrypted = transport.get_extra_info("ssl_object") is not None
        if self._is_encrypted and (limit := getattr(transport, "set_read_buffer_limits", None)) is not None:
            limit(ENCRYPTED)
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
        self._is_silent = True
        """Nothing of an answer has come; aiohttp holds the one before."""
        self._awaits_head = False
        self._copied = 0
        """Bytes of the answer that are still to come and take no parsing."""
        self._holds = False
        self._is_held = False

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
        is_answered = self._is_answered()
        if self._unparsed and is_answered:
            self._stray(b"")
        elif self._unparsed:  # what is left belongs to the answer that nobody waits for any more
            self._cut_off()
        if self._is_encrypted and (not is_answered or self._protocol.should_close):
            # Closed, it would go on to decrypt whatever comes for half a minute, to see a close_notify.
            self._transport.abort()

    def hold_back(self) -> None:
        """Read no more than the beginning of a long body of a told length, until somebody says where the
        rest goes. Not over TLS: what follows a body may be here already, and nobody could tell."""
        self._holds = not self._is_encrypted
        self._make_room(READ_HEAD)

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
            elif self._is_worth_a_turn() and not self._transport.is_closing():
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

    def _make_room(self, size: int) -> None:
        if hasattr(self._transport, "max_size"):  # asyncio's, of a plain socket
            self._transport.max_size = size

    def _is_worth_a_turn(self) -> bool:
        """Others have theirs before more is read. Of what comes over TLS nobody can say how many records it
        took, each of which costs as much as a kilobyte."""
        return self._is_encrypted and not self._is_answered()

    def _is_answered(self) -> bool:
        content = self._protocol._payload  # noqa: SLF001
        return not self._is_silent and content is not None and content.is_eof()

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
        self._is_silent = False
        if self._awaits_head:
            self._awaits_head = False
            self._copied = told_length(data)
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


def told_length(data: bytes) -> int:
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
