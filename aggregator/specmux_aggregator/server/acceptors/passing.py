"""The service's side of its acceptors: passes busy connections on, and takes them back.

A connection begins in the service. Once it asked ``HOT`` times in a second for what is remembered, it goes to
the acceptor with the fewest, unless the service itself has fewer that are as busy.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import math
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Any, Final

from prometheus_client.core import GaugeMetricFamily, Metric

from specmux_aggregator.server.acceptors.keeper import Keeper
from specmux_aggregator.server.acceptors.messages import (
    COUNTED,
    PassedConnection,
    ReturnedConnection,
    adopt,
    receive,
    send,
)
from specmux_aggregator.server.body_files import FILED_MIN
from specmux_aggregator.server.connection import Connection
from specmux_aggregator.server.connections import Connections
from specmux_aggregator.server.dispatch import Dispatch
from specmux_aggregator.server.memo import Slot
from specmux_aggregator.server.stats import RequestCounts
from specmux_converters.counted_nouns import counted

logger = logging.getLogger(__name__)

HOT: Final = 8

LEASE: Final = 1.0
"""Seconds for which an acceptor relies on a permission."""


class PassableConnection(Connection):
    """A client's connection in the service."""

    __slots__ = ("_acceptors", "_hits", "_returned", "_since")

    def __init__(
        self,
        acceptors: Acceptors,
        connections: Any,
        dispatch: Dispatch,
        returned: ReturnedConnection | None = None,
    ) -> None:
        super().__init__(connections, dispatch)
        self._acceptors = acceptors
        self._returned = returned or ReturnedConnection(0)
        self._hits = 0
        self._since = 0.0

    def connection_made(self, transport: Any) -> None:
        self.connections.admission.release(self._returned.holder)
        super().connection_made(transport)
        if self._returned.holder:
            self.incoming.head_since = 0.0
        if self._returned.data:
            self.data_received(self._returned.data)

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._acceptors.staying.pop(self, None)

    def data_received(self, data: bytes) -> None:
        incoming, is_free = self.incoming, self.task is None and not self.outgoing.is_busy
        if is_free and incoming.is_at_boundary and not (incoming.is_deaf or self._is_closing):
            now = time.monotonic()
            slot = self._answers.recall(data, self, now)
            if slot is not None:
                if now - self._since > 1.0:
                    self._since, self._hits = now, 0
                self._hits += 1
                if self._hits != HOT or not self._acceptors.take(self, data, slot, now):
                    incoming.head_since = 0.0
                    self.outgoing.answer(slot, now)
                return
        super().data_received(data)


class Acceptors:
    """All acceptors of a service. Lives on one event loop."""

    def __init__(self, keeper: Keeper, generation: Callable[[], int]) -> None:
        """``generation``: the service's."""
        self._keeper = keeper
        self._generation = generation
        self._running: dict[socket.socket, set[int]] = {}
        """The acceptors, and the places of the connections of each."""
        self.staying: dict[object, float] = {}
        """Connections that the service keeps, and when they were last found busy."""
        self._pruned_at = 0.0
        self._numbers = itertools.count(1)
        self._tasks: set[asyncio.Task[Any]] = set()
        self._is_stopping = False

    def serve(self, connections: Connections, dispatch: Dispatch) -> None:
        """Have ``connections`` passed on from now on."""
        self._connections = connections
        made: Any = partial(PassableConnection, self, connections, dispatch)
        connections.made = made
        asyncio.get_running_loop().add_reader(self._keeper.control, self._welcome)

    def renew(self, _: object = None) -> None:
        """Call it in the turn in which the generation changes: nobody has seen the change before."""
        self._keeper.shared.set(self._generation())

    def take(self, connection: Connection, data: bytes, slot: Slot, now: float) -> bool:
        """Pass on a busy connection, with the request that waits on it; False if it stays."""
        if not self._running or connection.transport is None or self._is_stopping:
            return False
        acceptor, holders = min(self._running.items(), key=lambda one: len(one[1]))
        if now - self._pruned_at > 1.0:
            self._pruned_at = now
            self.staying = {one: since for one, since in self.staying.items() if now - since <= 2.0}
        self.staying[connection] = now
        permission, answer = slot.permission, slot.prepared
        if len(holders) >= len(self.staying):
            return False
        if permission is not None:
            if not permission.lasts(connection, now + LEASE):
                return False
            answer = replace(answer, good_until=min(now + LEASE, answer.good_until or math.inf))
        descriptors = [connection.transport.get_extra_info("socket").fileno()]
        if len(answer.body) >= FILED_MIN:
            file = self._connections.files.file_of(answer.body)
            if file is None:
                return False
            descriptors.append(file)
            answer = replace(answer, body=b"")
        holder, generation = next(self._numbers), self._keeper.shared.generation
        passed = PassedConnection(holder, data, generation, answer, len(slot.prepared.body))
        try:
            send(acceptor, passed, descriptors, flags=socket.MSG_DONTWAIT)
        except OSError:  # it does not read, or has ended
            return False
        del self.staying[connection]
        holders.add(holder)
        self._connections.admission.pass_on(connection, holder)
        self._connections.stats.at_once -= 1  # the acceptor counts it
        self._connections.stats.memo_hits -= 1
        connection.cut_off()
        return True

    def collect(self) -> Iterator[Metric]:
        held = sum(map(len, self._running.values()))
        yield GaugeMetricFamily("specmux_acceptors", "Acceptors that run.", value=len(self._running))
        yield GaugeMetricFamily("specmux_acceptor_connections", "Connections in acceptors.", value=held)

    async def stop(self, seconds: float) -> None:
        """Take every connection back, for ``seconds``; then end acceptors and keeper."""
        self._is_stopping = True
        for acceptor in self._running:
            with contextlib.suppress(OSError):
                send(acceptor, None, flags=socket.MSG_DONTWAIT)
        until = time.monotonic() + seconds
        while (self._running or self._tasks) and time.monotonic() < until:
            await asyncio.sleep(0.01)
        for acceptor in tuple(self._running):
            self._lose(acceptor)
        if self._keeper.control.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(self._keeper.control)
        self._keeper.end()

    def _welcome(self) -> None:
        for _, descriptors in receive(self._keeper.control):
            acceptor = socket.socket(fileno=descriptors[0])
            self._running[acceptor] = set()
            asyncio.get_running_loop().add_reader(acceptor, self._receive, acceptor)
        if self._keeper.control.fileno() < 0:
            logger.error("the keeper of acceptors ended: none is replaced until a restart")

    def _receive(self, acceptor: socket.socket) -> None:
        for message, descriptors in receive(acceptor):
            if isinstance(message, RequestCounts):
                self._add(message)
                self.renew()  # evictions tell nobody, and acceptors hold what was evicted
            elif isinstance(message, ReturnedConnection):
                self._running[acceptor].discard(message.holder)
                if descriptors:
                    made: Any = partial(self._connections.made, message)  # type: ignore[call-arg]  # see serve
                    adopt(socket.socket(fileno=descriptors[0]), made, self._tasks)
                else:
                    self._connections.admission.release(message.holder)
        if acceptor.fileno() < 0:
            self._lose(acceptor)

    def _add(self, counts: RequestCounts) -> None:
        stats = self._connections.stats
        for each in counts.durations:
            cell = stats.cells[each.route, each.format, each.code, each.is_stale]
            cell.buckets = [one + other for one, other in zip(cell.buckets, each.buckets, strict=True)]
            cell.seconds += each.seconds
        for name in COUNTED:
            setattr(stats, name, getattr(stats, name) + getattr(counts, name))

    def _lose(self, acceptor: socket.socket) -> None:
        holders = self._running.pop(acceptor)
        for holder in holders:
            self._connections.admission.release(holder)
        if not self._is_stopping:
            logger.error("an acceptor ended, and with it %s", counted(len(holders), "connection"))
        if acceptor.fileno() >= 0:
            asyncio.get_running_loop().remove_reader(acceptor)
            acceptor.close()
