"""Answers plain requests inside the HTTP parser's callback: no task, no request and no response object.

How it works. aiohttp's ``RequestHandler.data_received`` hands bytes to a parser, queues the messages that
come out, and wakes a task that makes a request object, calls the handler in a task of its own and writes the
response. For a GET whose answer is prepared all of that costs more than the answer. So the parser is wrapped:
when what was fed ends in exactly one plain message, and the connection's task sits idle, the answer is
written at once, the message is marked as consumed, and aiohttp is told that nothing came. In every other case
it gets what its parser said, and the ordinary tier answers; both write the same bytes (tests/conformance).

On top lies a memo from the exact bytes of a request to its answer, which saves the parser, too. It is filled
only from what the parser took as one whole request between two message boundaries, and asked only at such a
boundary: the parser would be in the same state after these bytes as before.

All this leans on private parts of aiohttp; canary.py proves them at each start.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from aiohttp import HttpVersion11
from aiohttp.hdrs import AUTHORIZATION, EXPECT, HOST
from aiohttp.http import RawRequestMessage
from aiohttp.streams import EMPTY_PAYLOAD

from specmux_aggregator.server.connection import NOTHING, Connection, Parsed
from specmux_aggregator.server.held import END_OF_HEAD, HEAD_MAX
from specmux_aggregator.server.memo import Answers
from specmux_aggregator.server.protocols import Begun, Shared
from specmux_aggregator.server.request_memo import Slot
from specmux_aggregator.server.requests import is_host
from specmux_aggregator.server.sending import SLICE, WHOLE_MAX


class AcceleratedConnection(Connection):
    """A connection that answers what it can before aiohttp hears of it."""

    __slots__ = ("_answers", "_is_at_boundary", "_is_ours")

    def __init__(
        self,
        connections: Shared,
        *,
        answers: Answers,
        is_ours: Callable[[RawRequestMessage, Connection], bool],
        **settings: Any,
    ) -> None:
        """``is_ours``: whether the answer to a request may be given at once, and by us."""
        super().__init__(connections, **settings)
        self._answers = answers
        self._is_ours = is_ours
        self._is_at_boundary = True
        """Every byte so far belongs to a request that was answered here: the parser is as it was at first."""

    def data_received(self, data: bytes) -> None:
        if self._is_at_boundary:
            now = time.monotonic()
            slot = self._answers.recall(data, now)
            if slot is not None and self._can_answer() and self._send(slot, now):
                self.connections.stats.memo_hits += 1
                return
        super().data_received(data)

    def _feed(self, data: bytes) -> Parsed:
        if self._is_refused:
            return NOTHING
        parsed: Parsed = self._parse(data)
        if self._answer_at_once(data, parsed):
            self.held.answered_at_once(data)
            return NOTHING
        self._count(data, parsed)
        return parsed

    def _answer_at_once(self, data: bytes, parsed: Parsed) -> bool:
        messages, is_upgraded, _ = parsed
        was_at_boundary = self._is_at_boundary
        self._is_at_boundary = False
        # ``begun``: the memo knew the answer, and could not write all of it.
        if len(messages) != 1 or is_upgraded or self.begun is not None:
            return False
        message, payload = messages[0]
        if payload is not EMPTY_PAYLOAD or not is_plain(message) or not self._can_answer():
            return False
        if self.held.head + len(data) > HEAD_MAX:
            return False
        now = time.monotonic()
        try:
            slot = self._answers.find(message, now) if self._is_ours(message, self) else None
        except Exception:  # noqa: BLE001 - the ordinary tier meets the same error, logs it and answers 500
            return False
        if slot is None or not self._send(slot, now):
            return False
        self._message_consumed()
        if data.endswith(END_OF_HEAD):
            self._is_at_boundary = True
            if was_at_boundary and AUTHORIZATION not in message.headers:  # nobody's token is kept
                self._answers.remember(data, slot)
        return True

    def _can_answer(self) -> bool:
        """The task is parked with nothing queued, and what is written now goes out in order."""
        waiter = self._waiter
        return (
            waiter is not None
            and not waiter.done()
            and not self._messages
            and not self._paused
            and not self._close
            and not self._force_close
            and not self._upgraded
            and self.transport is not None
            and not self.transport.is_closing()
        )

    def _send(self, slot: Slot, now: float) -> bool:
        """Write the answer; False when the client does not keep up, and ``begun`` says how far it went."""
        prepared, transport, connections = slot.prepared, self.transport, self.connections
        assert transport is not None
        body = prepared.body
        lines = connections.lines.end_of_head(prepared, now)
        if len(body) <= WHOLE_MAX:
            transport.write(b"".join((prepared.head, lines, body)))
        else:
            transport.write(b"".join((prepared.head, lines, memoryview(body)[:SLICE])))
            sent = SLICE if transport.is_closing() else self.push(body, SLICE)
            if sent < len(body):
                self.begun = Begun(prepared, sent, now)
                return False
        self._request_count += 1
        self._partial_since = 0.0
        end = time.monotonic()
        self._next_keepalive_close_time = end + self._keepalive_timeout
        slot.cell.add(end - now)
        connections.stats.accelerated += 1
        return True


def is_plain(message: RawRequestMessage) -> bool:
    """A GET or HEAD of HTTP/1.1 that the ordinary tier would answer without more ado, and go on."""
    return (
        message.method in ("GET", "HEAD")
        and message.version is HttpVersion11
        and not message.should_close
        and not message.upgrade
        and EXPECT not in message.headers
        and is_host(message.headers[HOST])
    )
