"""Output to a client: prepared answers as far as the kernel accepts them, the rest when it has room.

Almost nothing is queued in the process. Copying is most of the cost of a large answer, so a body requested
repeatedly has a memory file (``body_files``).
"""

from __future__ import annotations

import asyncio
import os
import socket
import time
from bisect import bisect_left
from dataclasses import dataclass
from typing import Final

from specmux_aggregator.server.body_files import FILED_MIN
from specmux_aggregator.server.memo import Slot, slot_of
from specmux_aggregator.server.output_limits import SMALL, TOO_MUCH
from specmux_aggregator.server.protocols import ListenerState
from specmux_aggregator.server.stats import BOUNDS

JOINED_MAX: Final = 16 * 1024
"""The largest body that is copied behind its head: above it, writing several pieces is cheaper."""

WHOLE_MAX: Final = 128 * 1024
"""The largest body that is queued in one piece with its head."""

FIRST: Final = 16 * 1024
"""Bytes of a larger body that are queued with its head."""

SLICE: Final = 64 * 1024
"""Bytes of one piece of a larger body, if the transport has to queue it."""

KICK: Final = 16 * 1024
"""Bytes queued after the kernel refused more, so that the transport reports when they are sent."""

CLOSE: Final = b"Connection: close\r\n"
KEEP_ALIVE: Final = b"Connection: keep-alive\r\n"
"""The header line for clients of HTTP/1.0."""


def write(transport: asyncio.Transport, file: int, head: bytes, end: bytes, body: bytes) -> int:
    """Write an answer without copying it; returns the number of body bytes handed over. ``file``: the
    descriptor of the transport's unencrypted socket. ``body`` is longer than FIRST."""
    if transport.is_closing() or transport.get_write_buffer_size():
        rest = body if len(body) <= WHOLE_MAX else memoryview(body)[:FIRST]
        transport.write(b"".join((head, end, rest)))
        return len(rest)
    ahead = len(head) + len(end)
    try:
        taken = os.writev(file, (head, end, body))
    except OSError:  # full or closed: the transport notices and reports it
        taken = 0
    if taken >= ahead:
        return taken - ahead
    transport.write(b"".join((head, end, body[:FIRST]))[taken:])
    return FIRST


class BorrowedSocket(socket.socket):
    """The socket of a transport, for operations that the transport lacks. The transport remains its owner."""

    __slots__ = ()

    def __del__(self) -> None:
        self.detach()


def lead(transport: asyncio.Transport, wire: BorrowedSocket, head: bytes) -> None:
    """Write a head so that it is sent together with the first bytes of the body, which must follow at once.
    The transport of ``wire`` must have nothing queued."""
    try:
        taken = wire.send(head, socket.MSG_MORE)
    except OSError:  # full or closed: the transport notices and reports it
        taken = 0
    if taken < len(head):
        transport.write(head[taken:])


def push(transport: asyncio.Transport, wire: int | None, body: bytes, sent: int, file: int | None) -> int:
    """Hand over ``body`` from ``sent`` on until the transport queues something; returns the new offset.

    The transport's high-water mark must be 0, so that ``pause_writing`` reports queued data and
    ``resume_writing`` an empty queue. ``file`` holds the same bytes; ``wire`` is the descriptor of the
    transport's socket, None if it is encrypted.
    """
    size, view = len(body), memoryview(body)
    while sent < size and not transport.get_write_buffer_size() and not transport.is_closing():
        piece = SLICE
        if wire is not None:
            try:
                if file is None:
                    taken = os.write(wire, view[sent:])
                else:
                    taken = os.sendfile(wire, file, sent, size - sent)
            except OSError:  # full or closed: the transport notices and reports it
                taken = 0
            if taken:
                sent += taken
                continue
            piece = KICK
        transport.write(view[sent : sent + piece])
        sent += piece
    return min(sent, size)


@dataclass(frozen=True, slots=True)
class Unsent:
    """A large answer whose head and first ``sent`` bytes of the body are written."""

    slot: Slot
    sent: int
    started: float
    is_last: bool


class Outgoing:
    """The output of one connection."""

    __slots__ = (
        "_borrowed",
        "_drained",
        "_file",
        "_shared",
        "_transport",
        "answered_at",
        "is_busy",
        "is_encrypted",
        "is_paused",
        "pushes",
        "unsent",
    )

    def __init__(self, transport: asyncio.Transport, shared: ListenerState, *, is_encrypted: bool) -> None:
        self._transport = transport
        self._shared = shared
        self.is_encrypted = is_encrypted
        wire = None if is_encrypted else transport.get_extra_info("socket")
        self._file: int | None = None if wire is None else wire.fileno()
        """The descriptor of the socket, if the connection is not encrypted."""
        self._borrowed: BorrowedSocket | None = None
        """A socket object over the same descriptor, once needed."""
        self._drained: asyncio.Future[None] | None = None
        """Resolved when writing is no longer paused."""
        self.answered_at = time.monotonic()
        """Monotonic seconds when the last answer was written, or the connection made."""
        self.is_paused = False
        """Whether written data waits for the kernel."""
        self.is_busy = False
        """Whether writing is paused or part of an answer is unsent."""
        self.unsent: Unsent | None = None
        self.pushes = 0
        """Counter that distinguishes a buffer that drains and refills from one that is stuck."""

    def answer(self, slot: Slot, started: float, line: bytes = b"", *, is_last: bool = False) -> bool:
        """Write an answer. Returns False if a part of it is unsent. ``started``: monotonic seconds when its
        request was taken up. ``line``: a field to add to its head."""
        prepared = slot.prepared
        body = prepared.body
        if len(body) > SMALL and not self._shared.unread.admit(body, self, time.monotonic()):
            self._shared.stats.requests_refused += 1
            return self.answer(slot_of(TOO_MUCH, self._shared.stats), started, line, is_last=is_last)
        end = line + self._shared.lines.end_of_head(prepared, started)
        if len(body) <= (WHOLE_MAX if self._file is None else JOINED_MAX):
            self._transport.write(b"".join((prepared.head, end, body)))
            # _count, inlined.
            now = self.answered_at = time.monotonic()
            seconds = now - started
            cell = slot.cell
            cell.seconds += seconds
            cell.buckets[bisect_left(BOUNDS, seconds)] += 1
            return True
        return self._begin(slot, started, end, is_last=is_last)

    @property
    def sent(self) -> int:
        """Bytes of the body of an unsent answer already handed to the transport."""
        return 0 if self.unsent is None else self.unsent.sent

    def give_way(self) -> None:
        """End the connection at once because it reads too slowly."""
        self._shared.stats.write_stalls += 1
        self._transport.abort()

    def resume(self) -> Unsent | None:
        """Continue when the kernel has taken the pending data. Returns the answer whose last byte is now
        handed over."""
        self.is_paused = self.is_busy = False
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            drained.set_result(None)
        unsent, self.unsent = self.unsent, None
        if unsent is None:
            return None
        file = None if self._file is None else self._shared.files.find(unsent.slot.prepared.body)
        is_done = self._push(unsent.slot, unsent.sent, unsent.started, file, is_last=unsent.is_last)
        return unsent if is_done else None

    def pause(self) -> None:
        self.is_paused = self.is_busy = True

    def send(self, data: bytes) -> None:
        """Write a part of a streamed answer."""
        self.pushes += 1
        self._transport.write(data)

    async def drain(self) -> None:
        """Wait until the client has taken what was sent. Raises ConnectionResetError if the client is
        gone."""
        if self.is_paused:
            if self._drained is None:
                self._drained = asyncio.get_running_loop().create_future()
            await self._drained

    def lose(self) -> None:
        """Count an answer that the client did not read to its end."""
        # a reference cycle through its traceback would keep the data alive
        drained, self._drained = self._drained, None
        if drained is not None and not drained.done():
            drained.set_exception(ConnectionResetError("the client is gone"))
        if self.unsent is not None:
            self._leave(self.unsent.slot.prepared.body)
        self.unsent = None

    def _begin(self, slot: Slot, started: float, end: bytes, *, is_last: bool) -> bool:
        """Write an answer without copying its body; returns False if a part of it is unsent."""
        transport, head, body = self._transport, slot.prepared.head, slot.prepared.body
        file = None if self.is_paused or transport.is_closing() else self._file_of(body)
        if file is not None:
            lead(transport, self._wire(), head + end)
            sent = 0
        elif self._file is not None:
            sent = write(transport, self._file, head, end, body)
        else:
            sent = FIRST
            transport.write(b"".join((head, end, memoryview(body)[:FIRST])))
        return self._push(slot, sent, started, file, is_last=is_last)

    def _push(self, slot: Slot, sent: int, started: float, file: int | None, *, is_last: bool) -> bool:
        body = slot.prepared.body
        if sent < len(body) and not self.is_paused:
            self.pushes += 1
            sent = push(self._transport, self._file, body, sent, file)
        if sent < len(body):
            self.is_busy = True
            self.unsent = Unsent(slot, sent, started, is_last)
            return False
        self._leave(body)
        self._count(slot, started)
        return True

    def _leave(self, body: bytes) -> None:
        if len(body) > SMALL:
            self._shared.unread.leave(body, self)

    def _file_of(self, body: bytes) -> int | None:
        return None if self._file is None or len(body) < FILED_MIN else self._shared.files.file_of(body)

    def _wire(self) -> BorrowedSocket:
        """The socket that the transport of an unencrypted connection writes to."""
        if self._borrowed is None:
            assert self._file is not None
            self._borrowed = BorrowedSocket(fileno=self._file)
        return self._borrowed

    def _count(self, slot: Slot, started: float) -> None:
        now = self.answered_at = time.monotonic()
        seconds = now - started
        cell = slot.cell
        cell.seconds += seconds
        cell.buckets[bisect_left(BOUNDS, seconds)] += 1
