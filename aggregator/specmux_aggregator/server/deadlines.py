"""When a connection has to end: idle for too long, a head that does not end (slow loris), an answer that is
not read, requests that wait behind one that is hardly read, a client that has left."""

from __future__ import annotations

import asyncio
import select
from typing import Final, Literal, Protocol

from specmux_aggregator.config.settings import ListenSettings
from specmux_aggregator.server.incoming import Incoming
from specmux_aggregator.server.outgoing import Outgoing
from specmux_aggregator.server.protocols import WireRequest

HANG_UP: Final = getattr(select, "POLLRDHUP", 0)
"""Linux's word for a client that closed its side; with 0 only one that closed both is noticed."""

Overdue = Literal["keepalive", "half_closed", "left", "header_timeout", "write_stall"]


class WatchedConnection(Protocol):
    """What of a connection deadlines depend on."""

    transport: asyncio.Transport | None
    streamed: WireRequest | None
    incoming: Incoming
    outgoing: Outgoing
    is_reading_paused: bool

    @property
    def is_idle(self) -> bool: ...

    @property
    def is_half_closed(self) -> bool: ...


class Deadlines:
    """Of one connection, which is looked at again and again."""

    __slots__ = ("_queued", "_stalled")

    def __init__(self) -> None:
        self._queued = (0.0, -1)
        """Since when requests wait behind the same one, and how many were taken up then."""
        self._stalled = (0.0, 0, 0)
        """Since when the write buffer is what it is; its bytes; what tells one that moves from one that does
        not."""

    def overdue(self, connection: WatchedConnection, now: float, listen: ListenSettings) -> Overdue | None:
        """Why the connection should end; None: it should not. ``now``: monotonic seconds."""
        wire = connection.transport
        if wire is None:
            return None
        if connection.is_idle:
            if connection.is_half_closed:
                return "half_closed"
            head_since = connection.incoming.head_since
            if head_since and now - head_since > listen.header_timeout:
                return "header_timeout"
            if now - connection.outgoing.answered_at > listen.keepalive_timeout:
                return "keepalive"
        if connection.streamed is not None and _has_left(connection, wire):
            return "left"
        if self._is_stuck(connection, now, listen.write_timeout):
            return "write_stall"
        return "write_stall" if self._is_stalled(connection, wire, now, listen.write_timeout) else None

    def _is_stuck(self, connection: WatchedConnection, now: float, timeout: float) -> bool:
        """Whether requests wait for too long behind an answer of ours that is read, but hardly."""
        waiting, taken = len(connection.incoming.messages), connection.incoming.taken
        if not waiting or connection.streamed is not None or self._queued[1] != taken:
            self._queued = (now, taken)
        return now - self._queued[0] > timeout

    def _is_stalled(
        self, connection: WatchedConnection, wire: asyncio.Transport, now: float, timeout: float
    ) -> bool:
        """Whether nothing of what is written was read for too long."""
        waiting, pushes = wire.get_write_buffer_size(), connection.outgoing.pushes
        since, before, pushes_before = self._stalled
        if waiting == 0 or waiting != before or pushes != pushes_before:
            self._stalled = (now, waiting, pushes)
            return False
        return now - since > timeout


def _has_left(connection: WatchedConnection, wire: asyncio.Transport) -> bool:
    """Whether the client closed its side while nothing is read, since it sent more than is taken up: then no
    event tells."""
    if not connection.is_reading_paused:
        return False
    poll = select.poll()
    poll.register(wire.get_extra_info("socket"), HANG_UP)
    return bool(poll.poll(0))
