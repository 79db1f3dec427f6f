"""A client's connection: turns messages into answers, one after the other.

An answer from memory is written in the same turn of the event loop in which its request arrived, with one
write and no task. A request that has to wait gets one task, and later requests queue behind it. Invariant:
there is a task, or unsent data, or neither; only in the last case is the next message taken up, so answers
leave in the order of their requests.

A memo of whole requests stands before the parser; it is consulted only between two messages.
"""

# Theory of operation
#
# Bytes arrive in ``data_received``. Between two requests they are first looked up in the memo as they
# are: most requests are known, and then neither parser nor task is involved. Otherwise ``Incoming``
# parses them, piece by piece, into messages.
#
# A message that is alone and whose answer is in memory is answered in the same turn. All others are
# queued in ``Incoming``, and ``_advance`` takes them up while the connection is free: no task runs and
# nothing waits to be sent. One that must wait gets the task of this connection (``_serve``), which calls
# ``_advance`` again when it is done.
#
# ``Outgoing`` writes. When the socket takes no more, the connection stays busy until ``resume_writing``,
# and reading pauses, so a client that does not read costs one answer. ``_finish`` ends each answer: the
# rest of the request's body is read and dropped, for LINGER seconds at most, then the connection goes on
# or closes.
#
# Three flags say how it ends. Closing: this answer is the last, and nothing more is read. Ending: the
# same, but the body is still read. Lingering: the last answer is written, and what else arrives is
# dropped, since a client that is still sending would lose the answer to a reset.
#
# What must never happen: two answers at once or in another order; an answer after the framing was lost; a
# wait without a limit (``Deadlines`` has one for each state); a header's text in a log.

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Sequence
from typing import Any, Final

from aiohttp import HttpVersion10
from aiohttp.http import RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader

from specmux_aggregator.config.settings import ListenSettings
from specmux_aggregator.server.deadlines import Deadlines, Overdue
from specmux_aggregator.server.dispatch import Dispatch, ends
from specmux_aggregator.server.incoming import RECEIVE, BrokenBody, Incoming, Parsed
from specmux_aggregator.server.input_limits import HeadTooLarge
from specmux_aggregator.server.memo import Slot
from specmux_aggregator.server.outgoing import CLOSE, KEEP_ALIVE, Outgoing
from specmux_aggregator.server.protocols import ListenerState, Pending, Reply, Response, WireRequest
from specmux_aggregator.server.refusals import FAILED, NotHTTP, answer_to, path_of

logger = logging.getLogger(__name__)

LINGER: Final = 2.0  # seconds for which the rest of an unwanted request body is read and dropped


class Connection(asyncio.Protocol):
    """One client's connection."""

    __slots__ = (
        "_answers",
        "_deadlines",
        "_dispatch",
        "_is_body_full",
        "_is_closing",
        "_is_ending",
        "_is_lingering",
        "_looked_up",
        "_payload",
        "certificate",
        "connections",
        "incoming",
        "is_half_closed",
        "is_reading_paused",
        "outgoing",
        "peername",
        "streamed",
        "task",
        "transport",
    )

    incoming: Incoming
    outgoing: Outgoing
    """Both are set in ``connection_made``."""

    def __init__(self, connections: ListenerState, dispatch: Dispatch) -> None:
        self.connections = connections
        self.transport: asyncio.Transport | None = None
        self.peername: object = None
        self.streamed: WireRequest | None = None
        self.certificate: object = None
        self._dispatch = dispatch
        self._answers = dispatch.answers
        self._deadlines = Deadlines()
        self._payload: StreamReader = EMPTY_PAYLOAD
        """The body of the message taken up last."""
        self._looked_up: tuple[RawRequestMessage, Pending | None] | None = None
        """The message to be taken up next in this turn, and the result of its lookup."""
        self.task: asyncio.Task[None] | None = None
        """The task that answers the current request."""
        self._is_body_full = False
        self.is_reading_paused = False
        self.is_half_closed = False
        self._is_closing = False
        """The connection ends with the current answer; nothing more is read."""
        self._is_ending = False
        """The connection ends with the current answer; the rest of its request body is still read."""
        self._is_lingering = False
        """The last answer is written; whatever else arrives is dropped."""

    @property
    def connected(self) -> bool:
        return self.transport is not None

    @property
    def is_ending(self) -> bool:
        """Whether the connection ends with the current answer."""
        return self._is_closing or self._is_ending

    @property
    def is_drained(self) -> bool:
        return self.is_half_closed and self.incoming.is_empty

    @property
    def is_idle(self) -> bool:
        """Whether no request is being answered or queued."""
        return self._is_free and self.incoming.is_empty

    @property
    def _is_free(self) -> bool:
        return self.task is None and not self.outgoing.is_busy

    @property
    def idle_since(self) -> float | None:
        """When the last answer was written or the connection made; None while it is busy."""
        wire = self.transport
        if wire is None or not self.is_idle or wire.is_closing():
            return None
        return self.outgoing.answered_at

    def overdue(self, now: float, listen: ListenSettings) -> Overdue | None:
        """The reason to end this connection; None if there is none. ``now``: monotonic seconds."""
        return self._deadlines.overdue(self, now, listen)

    # Callbacks of the event loop.

    def connection_made(self, transport: Any) -> None:
        self.transport = wire = transport
        self.peername = wire.get_extra_info("peername")
        self.incoming = Incoming(self, self.connections.held)
        is_encrypted = wire.get_extra_info("ssl_object") is not None
        self.outgoing = Outgoing(wire, self.connections, is_encrypted=is_encrypted)
        wire.set_write_buffer_limits(high=0)  # sending.push relies on a callback for every byte that waits
        if not is_encrypted and hasattr(wire, "max_size"):
            wire.max_size = RECEIVE  # asyncio would allocate 256 KiB for each read
        # A TLS connection was admitted when its handshake began.
        if is_encrypted or self.connections.admission.admit(self, self.peername):
            self.connections.add(self)
        else:
            self.close()

    def connection_lost(self, exc: BaseException | None) -> None:
        self.transport = None
        self.incoming.end()
        self.connections.remove(self)
        if self.outgoing.is_busy:
            self.outgoing.lose()
            self.connections.stats.disconnects += self.task is None
        if self.task is not None:
            # Work that is shared with other clients is shielded, so only this client's wait is cancelled.
            self.task.cancel()

    def data_received(self, data: bytes) -> None:
        incoming = self.incoming
        if incoming.is_deaf or self._is_closing:
            return
        if incoming.is_at_boundary and self.task is None and not self.outgoing.is_busy:
            # _is_known, inlined: most requests are known.
            now = time.monotonic()
            slot = self._answers.recall(data, self, now)
            if slot is not None:
                incoming.head_since = 0.0
                self.outgoing.answer(slot, now)
                return
        if self._take_in(data):
            self._advance()
            if self.connections.held.is_too_much:
                self.connections.cut_largest()

    def _take_in(self, data: bytes) -> bool:
        """Answer what can be answered in this turn and queue the rest; returns whether something is
        queued."""
        incoming, is_queued = self.incoming, False
        for piece in incoming.pieces(data):
            is_between = incoming.is_at_boundary and not is_queued and self._is_free
            if piece is not data and is_between and self._is_known(piece):
                continue
            messages = incoming.parse(piece)
            if not self._answer_at_once(piece, messages):
                incoming.queue(piece, messages)
                is_queued = True
            elif self._is_closing:
                break
        return is_queued or incoming.is_full

    def eof_received(self) -> bool | None:
        """Keep the connection until everything is answered: a client may close its side first (RFC 9112
        9.6)."""
        # After a close_notify no answer is expected; and a watch may stay silent for minutes while its
        # backend connection is held.
        if self.outgoing.is_encrypted or self.is_idle or self._is_lingering or self.streamed is not None:
            return None
        self.is_half_closed = True
        return True

    def pause_writing(self) -> None:
        self.outgoing.pause()

    def resume_writing(self) -> None:
        # In a turn of its own: asyncio calls this within its own write, after which it ends a transport that
        # is closing, and one that was closed here would be ended twice.
        asyncio.get_running_loop().call_soon(self._go_on_writing)

    def _go_on_writing(self) -> None:
        if self.transport is None or self.transport.get_write_buffer_size():  # lost, or filled meanwhile
            return
        done = self.outgoing.resume()
        if done is not None:
            self._finish(is_last=done.is_last)
        self._advance()

    def _advance(self) -> None:
        """Take up messages while they can be answered without waiting, then the first one that cannot."""
        while self.incoming.messages and self._is_free and not self._is_closing:
            self._take_up(*self.incoming.take())
        self._balance()

    def _go_on(self) -> None:
        """Parse, in a turn of its own, the input that was kept back."""
        rest = self.incoming.refill()
        if self.transport is not None and not self._is_closing:
            self._take_in(rest)
            self._advance()

    def _take_up(self, message: RawRequestMessage | HttpProcessingError, payload: StreamReader) -> None:
        self._payload = payload
        now = time.monotonic()
        if isinstance(message, HttpProcessingError):
            self._refuse(message, now)
            return
        looked_up, self._looked_up = self._looked_up, None
        if looked_up is None or looked_up[0] is not message:
            found = self._dispatch.immediate(message, self, now) if payload.is_eof() else None
        else:
            found = looked_up[1]
        if isinstance(found, Slot):
            is_last = ends(message, payload, found.prepared) or self._dispatch.is_stopping
            self._answer(found, now, message, is_last=is_last)
        else:
            serving = self._serve(WireRequest(message, payload, self), now, found)
            self.task = asyncio.get_running_loop().create_task(serving)

    def _is_known(self, data: bytes) -> bool:
        """Answer ``data`` from the memo if it is a known request; returns whether it was."""
        now = time.monotonic()
        slot = self._answers.recall(data, self, now)
        if slot is None:
            return False
        self.incoming.head_since = 0.0
        self.outgoing.answer(slot, now)
        return True

    def _answer_at_once(self, piece: bytes, messages: Sequence[Parsed]) -> bool:
        """Answer the message that ends with ``piece`` if it is the only one and its answer is in memory."""
        incoming, now = self.incoming, time.monotonic()
        if not self._is_free or not incoming.is_alone(piece, messages):
            return False
        message = messages[0][0]
        slot = self._dispatch.immediate(message, self, now)
        if not isinstance(slot, Slot):
            self._looked_up = message, slot
            return False
        is_last = ends(message, EMPTY_PAYLOAD, slot.prepared) or self._dispatch.is_stopping
        if incoming.is_at_boundary and not is_last:
            self._answers.remember(piece, message, self, slot)
        incoming.note_answered()
        self._answer(slot, now, message, is_last=is_last)
        return True

    def _refuse(self, error: HttpProcessingError, now: float) -> None:
        self.connections.stats.malformed += 1
        # The error's own message may quote a header field, and with it a credential.
        self.connections.complaints.log_malformed(self.peername, type(error).__name__)
        self._is_lingering = isinstance(error, (HeadTooLarge, NotHTTP))  # raised before the request ended
        self.outgoing.answer(self._answers.slot(answer_to(error)), now, CLOSE, is_last=True)
        self._finish(is_last=True)

    async def _serve(self, request: WireRequest, started: float, pending: Pending | None) -> None:
        """Answer a request that has to wait."""
        message = request.message
        try:
            outcome = await self._dispatch.respond(request, started, pending)
        except Exception:  # a bug
            logger.exception("%s %s failed", message.method, path_of(message))
            outcome = Reply(FAILED)
        if isinstance(outcome, Reply):
            self.task = None
            told, prepared = outcome.is_last, outcome.prepared
            is_last = ends(message, request.payload, prepared) if told is None else told
            is_last = is_last or self._dispatch.is_stopping
            self._answer(self._answers.slot(prepared), started, message, is_last=is_last)
        else:
            is_last = not await self._write_response(outcome, message) or not outcome.keep_alive
            self.task = None
            self._finish(is_last=is_last)
        self._advance()

    async def _write_response(self, response: Response, message: RawRequestMessage) -> bool:
        try:
            await response.write()
        except ConnectionError:
            self.close()
        except asyncio.CancelledError:
            self.task = None  # a reference cycle through its traceback would keep the answer alive
            raise
        except Exception:  # a bug
            logger.exception("%s %s failed", message.method, path_of(message))
            self.cut_off()
        else:
            return True
        return False

    def _answer(self, slot: Slot, started: float, message: RawRequestMessage, *, is_last: bool) -> None:
        if self.transport is None:
            return
        line = CLOSE if is_last else KEEP_ALIVE if message.version == HttpVersion10 else b""
        if not self.outgoing.answer(slot, started, line, is_last=is_last):
            return
        if is_last or self._payload is not EMPTY_PAYLOAD or self._is_closing or self.is_half_closed:
            self._finish(is_last=is_last)

    def _finish(self, *, is_last: bool) -> None:
        """After the answer is written: drop the rest of the request body, then close or continue."""
        payload, self._payload = self._payload, EMPTY_PAYLOAD
        if payload.is_eof() or self.transport is None:
            self._settle(is_last=is_last)
        else:
            self.task = asyncio.get_running_loop().create_task(self._drop(payload, is_last=is_last))

    async def _drop(self, payload: StreamReader, *, is_last: bool) -> None:
        """Read the rest of an unwanted body: if closed at once, the client might lose its answer (RFC 9112
        9.6)."""
        try:
            async with asyncio.timeout(LINGER):
                while not payload.is_eof():
                    await payload.readany()
        except (TimeoutError, BrokenBody):
            is_last = True
        self.task = None
        self._settle(is_last=is_last)
        self._advance()

    def _settle(self, *, is_last: bool) -> None:
        """Close the connection, or keep it for the next request."""
        if is_last or self._is_closing or self._is_ending or self.is_drained:
            if self._is_lingering and not self.is_half_closed and self.transport is not None:
                self._linger(self.transport)
            else:
                self.close()

    def _linger(self, transport: asyncio.Transport) -> None:
        """Drop further input for a while, so that a refused client reads its answer before the connection
        closes."""
        self._is_closing = True
        if transport.can_write_eof():
            transport.write_eof()
        asyncio.get_running_loop().call_later(LINGER, self.close)

    def pause_reading(self) -> None:
        """Called by aiohttp's reader when the buffer of the body is full."""
        self._is_body_full = True
        self._balance()

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Called by aiohttp's reader when the buffer of the body has room again."""
        self._is_body_full = False
        self._balance()

    def _balance(self) -> None:
        transport, incoming = self.transport, self.incoming
        if transport is None or transport.is_closing():
            return
        incoming.count(is_answered=self._is_free)
        if not self._is_body_full and incoming.falls_due():
            asyncio.get_running_loop().call_soon(self._go_on)
        is_too_much = self._is_body_full or incoming.is_too_much
        if is_too_much is not self.is_reading_paused:
            self.is_reading_paused = is_too_much
            (transport.pause_reading if is_too_much else transport.resume_reading)()

    def send(self, data: bytes) -> None:
        """Write a part of a streamed answer. Raises ConnectionResetError if the client is gone."""
        if self.transport is None or self.transport.is_closing():
            raise ConnectionResetError("the client is gone")
        self.outgoing.send(data)

    async def drain(self) -> None:
        """Wait until the client has taken what was sent. Raises ConnectionResetError if the client is
        gone."""
        if self.transport is None:
            raise ConnectionResetError("the client is gone")
        await self.outgoing.drain()

    def end_streaming(self) -> None:
        """Note the end of a backend's answer. Its body may have taken long, so the header timeout starts
        anew."""
        self.streamed = None
        self.incoming.head_since = 0.0

    def close(self) -> None:
        """Close the connection after the data already written."""
        self._is_closing = True
        if self.transport is not None:
            self.transport.close()

    def cut_off(self) -> None:
        """Close the connection at once and drop unsent data."""
        self._is_closing = True
        if self.transport is not None:
            self.transport.abort()

    def close_when_answered(self) -> None:
        """Close the connection now if it is idle, else after the current answer."""
        if self.task is None and self.outgoing.unsent is None:
            self.close()
        elif self.streamed is not None and not self.streamed.payload.is_eof():
            self._is_ending = True  # _is_closing would stop reading, request bodies included
        else:
            self._is_closing = True
