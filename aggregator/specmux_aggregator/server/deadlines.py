"""When to end a connection: idle too long, a head that never ends (slow loris), an answer that is not read,
requests stuck behind an answer that is hardly read, a client that has left."""

from __future__ import annotations

import asyncio
import select
from typing import Final, Literal, Protocol

from specmux_aggregator.config.settings import ListenSettings
from specmux_aggregator.server.incoming import Incoming
from specmux_aggregator.server.outgoing import Outgoing
from specmux_aggregator.server.protocols import WireRequest

HANG_UP: Final = getattr(select, "POLLRDHUP", 0)
"""Linux's event for a peer that closed its side; with 0 only a full close is noticed."""

Overdue = Literal["keepalive", "half_closed", "left", "header_timeout", "write_stall"]


class WatchedConnection(Protocol):
    """The part of a connection that deadlines depend on."""

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
    """The deadlines of one connection, checked repeatedly."""

    __slots__ = ("_queued", "_stalled")

    def __init__(self) -> None:
        self._queued = (0.0, -1)
        """Since when requests wait behind the same answer, and how many had been taken up then."""
        self._stalled = (0.0, 0, 0)
        """Since when the write buffer is unchanged, its size in bytes, and a counter that distinguishes a
        buffer that drains and refills."""

    def overdue(self, connection: WatchedConnection, now: float, listen: ListenSettings) -> Overdue | None:
        """The reason to end the connection; None if there is none. ``now``: monotonic seconds."""
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
        """Whether requests have waited too long behind an answer that is read too slowly."""
        waiting, taken = len(connection.incoming.messages), connection.incoming.taken
        if not waiting or connection.streamed is not None or self._queued[1] != taken:
            self._queued = (now, taken)
        return now - self._queued[0] > timeout

    def _is_stalled(
        self, connection: WatchedConnection, wire: asyncio.Transport, now: float, timeout: float
    ) -> bool:
        """Whether the client has read nothing of the pending output for too long."""
        waiting, pushes = wire.get_write_buffer_size(), connection.outgoing.pushes
        since, before, pushes_before = self._stalled
        if waiting == 0 or waiting != before or pushes != pushes_before:
            self._stalled = (now, waiting, pushes)
            return False
        return now - since > timeout


def _has_left(connection: WatchedConnection, wire: asyncio.Transport) -> bool:
    """Whether the client closed its side while reading is paused, when no event reports it."""
    if not connection.is_reading_paused:
        return False
    poll = select.poll()
    poll.register(wire.get_extra_info("socket"), HANG_UP)
    return bool(poll.poll(0))
