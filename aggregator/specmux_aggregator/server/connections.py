"""The connections of one listener: creates, tracks and closes them."""

from __future__ import annotations

import asyncio
import contextlib
import heapq
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from specmux_aggregator.config.settings import ListenSettings
from specmux_aggregator.http.prepared_answer import TimeLines
from specmux_aggregator.server.admission import Admission
from specmux_aggregator.server.body_files import BodyFiles
from specmux_aggregator.server.connection import LINGER, Connection
from specmux_aggregator.server.dispatch import Dispatch
from specmux_aggregator.server.input_limits import HELD_MAX, HeldByAll
from specmux_aggregator.server.malformed_log import AcceptComplaints
from specmux_aggregator.server.output_limits import UNREAD_MAX, UnreadBodies
from specmux_aggregator.server.stats import RequestStats

IDLE_FOUND: Final = 64
"""Connections that were idle longest, looked for together once there is room for no more."""


LAST_ANSWER: Final = 0.25
"""Seconds in which an idle connection may send a last request when the service ends: one round trip and some
margin."""

LAST_ANSWERS: Final = 2.0
"""Seconds in which that margin begins anew while some client asks: the others may be as slow."""


class Connections:
    """Creates the connections of one listener and tracks them. Lives on one event loop."""

    def __init__(
        self, dispatch: Dispatch, listen: ListenSettings, *, stats: RequestStats, unread_max: int = UNREAD_MAX
    ) -> None:
        """``unread_max``: bytes of large answers, over all connections, that clients have not read to the
        end."""
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
        """Set when the last connection closes, once something waits for that."""
        shared: Any = self  # it only ever receives its own connections; the protocol says any
        self.made: Callable[[], Connection] = partial(Connection, shared, dispatch)

    def add(self, connection: Connection) -> None:
        self._open.add(connection)

    def remove(self, connection: Connection) -> None:
        self.admission.release(connection)
        self._open.discard(connection)
        if self._emptied is not None and not self._open:
            self._emptied.set()

    def make_room(self) -> bool:
        """Close the connection that has been idle longest; False if none is idle."""
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
        """Cut the connections that hold the most until a quarter of the budget is free again."""
        for connection in sorted(self._open, key=lambda one: one.incoming.held.cost, reverse=True):
            if self.held.cost <= HELD_MAX * 3 // 4:
                break
            self.stats.held_cuts += 1
            connection.incoming.clear()
            connection.cut_off()

    def close_when_answered(self) -> None:
        """Close idle connections now and the others after their current answer."""
        for connection in tuple(self._open):
            connection.close_when_answered()

    async def drain(self, seconds: float) -> None:
        """Give idle connections a moment for one last answer, let running answers finish for ``seconds``,
        then cut the rest."""
        emptied = self._emptied = asyncio.Event()
        if not self._open:
            emptied.set()
        try:
            async with asyncio.timeout(seconds):
                await self._close_silent(emptied)
        except TimeoutError:
            running = [one.task for one in self._open if one.task is not None]
            for connection in tuple(self._open):
                connection.cut_off()
            await asyncio.wait([*running, asyncio.create_task(emptied.wait())], timeout=LINGER)
        self.files.clear()

    async def _close_silent(self, emptied: asyncio.Event) -> None:
        """Close each connection that stays silent for a while after an answer that did not announce the end:
        a request may be on its way, and closing now would lose it without a word to its client."""
        until = time.monotonic() + LAST_ANSWERS
        while not emptied.is_set():
            before, since = len(self._open), time.monotonic()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(emptied.wait(), LAST_ANSWER)
            if len(self._open) < before and time.monotonic() < until:
                continue
            for connection in tuple(self._open):
                if connection.outgoing.unsent is None and connection.outgoing.answered_at <= since:
                    connection.close_when_answered()
