"""The connections of one listener: made, kept in view, and ended."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from specmux_aggregator.config.settings import ListenSettings
from specmux_aggregator.http.prepared import TimeLines
from specmux_aggregator.server.admission import Admission
from specmux_aggregator.server.body_files import BodyFiles
from specmux_aggregator.server.complaints import AcceptComplaints
from specmux_aggregator.server.connection import LINGER, Connection
from specmux_aggregator.server.dispatch import Dispatch
from specmux_aggregator.server.held import HELD_MAX, HeldByAll
from specmux_aggregator.server.stats import RequestStats
from specmux_aggregator.server.unread import UNREAD_MAX, UnreadBodies

IDLE_FOUND: Final = 64
"""Connections that were idle longest, looked for together once there is room for no more."""


LAST_ANSWER: Final = 0.25
"""Seconds for a last request of a connection that is idle when the service ends: a round trip, and some."""


class Connections:
    """Makes the connections of one listener and keeps them in view. Lives in one event loop."""

    def __init__(
        self, dispatch: Dispatch, listen: ListenSettings, *, stats: RequestStats, unread_max: int = UNREAD_MAX
    ) -> None:
        """``unread_max``: bytes of large answers that are not read to their end, all together."""
        self.stats = stats
        self.lines = TimeLines()
        self.files = BodyFiles(stats)
        self.held = HeldByAll()
        self.unread = UnreadBodies(unread_max)
        self.complaints = AcceptComplaints()
        self.listen = listen
        self.admission = Admission(listen, stats, make_room=self.make_room)
        self._open: set[Connection] = set()
        self._idle: deque[tuple[float, Connection]] = deque()
        self._emptied: asyncio.Event | None = None
        """Set with the end of the last connection, once that is waited for."""
        shared: Any = self  # it is told of its own connections alone, where Shared says any
        self.made: Callable[[], Connection] = partial(Connection, shared, dispatch)

    def opened(self, connection: Connection) -> None:
        self._open.add(connection)

    def closed(self, connection: Connection) -> None:
        self.admission.release(connection)
        self._open.discard(connection)
        if self._emptied is not None and not self._open:
            self._emptied.set()

    def make_room(self) -> bool:
        """Close the connection that was idle longest; False: none is idle."""
        if not self._idle:
            waiting = ((since, id(one), one) for one in self._open if (since := one.idle_since) is not None)
            self._idle.extend((since, one) for since, _, one in heapq.nsmallest(IDLE_FOUND, waiting))
        while self._idle:
            since, connection = self._idle.popleft()
            if connection.idle_since == since:
                self.stats.idle_closed += 1
                self.admission.release(connection)
                connection.close()
                return True
        return False

    def sweep(self, now: float) -> None:
        """Cut the connections that are overdue. ``now`` is monotonic seconds."""
        for connection in tuple(self._open):
            match connection.overdue(now, self.listen):
                case None:
                    continue
                case "keepalive":
                    connection.close()
                    continue
                case "header_timeout":
                    self.stats.header_timeouts += 1
                case "write_stall":
                    self.stats.write_stalls += 1
            connection.cut_off()

    def cut_largest(self) -> None:
        """Cut those that hold most of requests until a quarter of what all may hold is free again."""
        for connection in sorted(self._open, key=lambda one: one.incoming.held.cost, reverse=True):
            if self.held.cost <= HELD_MAX * 3 // 4:
                break
            self.stats.held_cuts += 1
            connection.incoming.clear()
            connection.cut_off()

    def close_when_answered(self) -> None:
        """End every connection: the idle now, the others after the running answer."""
        for connection in tuple(self._open):
            connection.close_when_answered()

    async def drain(self, seconds: float) -> None:
        """Give what is idle a moment for one last answer, let running answers finish for ``seconds``, and cut
        what is left then."""
        emptied = self._emptied = asyncio.Event()
        if not self._open:
            emptied.set()
        if any(one.is_idle for one in self._open):
            # A request may be on its way to us: its client would lose it, and had no word that we end.
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(emptied.wait(), min(LAST_ANSWER, seconds))
        self.close_when_answered()
        try:
            await asyncio.wait_for(emptied.wait(), seconds)
        except TimeoutError:
            running = [one.task for one in self._open if one.task is not None]
            for connection in tuple(self._open):
                connection.cut_off()
            await asyncio.wait([*running, asyncio.create_task(emptied.wait())], timeout=LINGER)
        self.files.clear()
