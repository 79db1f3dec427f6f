"""An acceptor: a process that answers remembered requests on connections that the service passed to it.

Invariant: an answer leaves only while the service would give it from its memo: its generation is the one in
shared memory, the caller is permitted, and the request is recognised as in ``memo``. With anything else a
connection goes back to the service, together with the bytes that were read.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import socket
import sys
import time
from dataclasses import replace
from hashlib import sha256
from typing import Any, Final

from specmux_aggregator.config.settings import Settings
from specmux_aggregator.server.acceptors.messages import (
    COUNTED,
    Message,
    PassedConnection,
    ReturnedConnection,
    SharedFiles,
    SharedGeneration,
    adopt,
    receive,
    send,
)
from specmux_aggregator.server.connection import Connection
from specmux_aggregator.server.connections import Connections
from specmux_aggregator.server.deciding_head import deciding_part
from specmux_aggregator.server.dispatch import Dispatch
from specmux_aggregator.server.memo import KEY_MAX, Answers, slot_of
from specmux_aggregator.server.stats import RequestStats

SWEEP: Final = 1.0
"""Seconds between looks at the connections, and between reports of the counters."""

COLD: Final = 5.0
"""Seconds without a request after which a connection goes back, where idle ones make room for others."""

BODIES: Final = 64
"""Bodies that are looked for among those that are known; the memo bounds what is kept."""


class LearntAnswers(Answers):
    """A memo that asks no service: it knows what was passed to it."""

    __slots__ = ("_bodies", "files")

    def __init__(self, shared: Any, stats: RequestStats, *, takes_secrets: bool) -> None:
        super().__init__(shared, stats)
        if takes_secrets:
            self._keyed = sha256(secrets.token_bytes(64))
        self.files = SharedFiles()
        self._bodies: dict[object, Any] = {}
        """The newest bodies, each once; those of memory files by their inode."""

    def learn(self, passed: PassedConnection, file: int | None = None) -> None:
        """Remember the answer, if its generation is in force. Takes ownership of ``file``."""
        self.forget_former()
        data = passed.data
        body: Any = passed.answer.body if file is None else self.files.map(file, passed.size)
        if passed.generation != self._generation or len(body) != passed.size:
            return
        if len(self._bodies) >= BODIES:
            self._bodies.clear()
        body = self._bodies.setdefault(body if file is None else os.fstat(file).st_ino, body)
        slot = slot_of(replace(passed.answer, body=body), self._stats)
        part = deciding_part(data) if data.startswith((b"GET ", b"HEAD ")) else None
        if part is not None and len(part) <= KEY_MAX:
            self._store(self._deciding, part, slot)
            self._note_line(data)
        else:
            self._store(self._exact, data, slot)

    def forget_former(self) -> None:
        """Forget answers of another generation than the one in force."""
        if self._service.generation != self._generation:
            self._renew()

    def _renew(self) -> None:
        super()._renew()
        self._bodies.clear()


class HeldConnection(Connection):
    """A client's connection in an acceptor."""

    __slots__ = ("_acceptor", "_data", "holder")

    def __init__(self, acceptor: Acceptor, passed: PassedConnection) -> None:
        connections: Any = acceptor.connections
        super().__init__(connections, acceptor.dispatch)
        self._acceptor = acceptor
        self._data = passed.data
        """Bytes that wait until an answer is written."""
        self.holder = passed.holder
        """0 once it was returned."""

    @property
    def is_drained(self) -> bool:
        return self.is_half_closed and not self._data

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._advance()

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        self._acceptor.note_end(self)

    def data_received(self, data: bytes) -> None:
        if self.outgoing.is_busy and self.transport is not None:
            self._data += data
            self.transport.pause_reading()
            return
        now = time.monotonic()
        slot = self._answers.recall(data, self, now)
        if slot is None:
            self._acceptor.give_back(self, data)
        else:
            self.incoming.head_since = 0.0
            self.outgoing.answer(slot, now)

    def _advance(self) -> None:
        """Called when an answer is written."""
        if self.transport is None or self._is_closing or self.outgoing.is_busy:
            return
        data, self._data = self._data, b""
        if data:
            self.transport.resume_reading()
            self.data_received(data)
        elif self._acceptor.is_ending:
            self._acceptor.give_back(self, b"")


class Acceptor:
    """The process. Lives on one event loop."""

    def __init__(self, settings: Settings, service: socket.socket, shared: SharedGeneration) -> None:
        self._service = service
        self._stats = stats = RequestStats()
        self._answers = LearntAnswers(shared, stats, takes_secrets=settings.auth.is_private)
        responder: Any = shared  # asked for its generation alone
        self.dispatch = Dispatch(
            responder, self._answers, stats=stats, max_in_flight=0, slow_request=settings.log.slow_request
        )
        # The service counts connections.
        listen = replace(settings.listen, max_connections=sys.maxsize, max_connections_per_address=0)
        self.connections = Connections(self.dispatch, listen, stats=stats)
        files: Any = self._answers.files
        self.connections.files = files
        self.is_ending = False
        self._held: set[HeldConnection] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._done = asyncio.Event()

    async def run(self) -> None:
        """Until the service ends, or asks for every connection and has it."""
        asyncio.get_running_loop().add_reader(self._service, self._receive)
        while not self._done.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._done.wait(), SWEEP)
            now = time.monotonic()
            self.connections.sweep(now)
            self._answers.forget_former()
            for connection in tuple(self._held):
                if now - (connection.idle_since or now) > COLD:
                    self.give_back(connection, b"")
            self._send(self._stats.snapshot())
            for cell in self._stats.cells.values():
                cell.buckets, cell.seconds = [0] * len(cell.buckets), 0.0
            for name in COUNTED:
                setattr(self._stats, name, 0)

    def give_back(self, connection: HeldConnection, data: bytes) -> None:
        if connection.transport is not None and connection.holder:
            client = connection.transport.get_extra_info("socket")
            self._send(ReturnedConnection(connection.holder, data), client.fileno())
            connection.holder = 0
            connection.cut_off()

    def note_end(self, connection: HeldConnection) -> None:
        self._held.discard(connection)
        if connection.holder:
            self._send(ReturnedConnection(connection.holder))
        if self.is_ending and not self._held:
            self._done.set()

    def _send(self, message: Message, *descriptors: int) -> None:
        # Waits where the service has much to read; the service never waits for an acceptor.
        try:
            send(self._service, message, descriptors)
        except OSError:  # the service has ended
            self._done.set()

    def _receive(self) -> None:
        for message, descriptors in receive(self._service):
            if isinstance(message, PassedConnection):
                self._take(message, descriptors)
            else:
                self.is_ending = True
                self._answers.stop()
                for connection in tuple(self._held):
                    if connection.idle_since is not None:
                        self.give_back(connection, b"")
        if self._service.fileno() < 0 or (self.is_ending and not self._held):
            self._done.set()

    def _take(self, passed: PassedConnection, descriptors: list[int]) -> None:
        if not descriptors:  # too many files are open
            self._send(ReturnedConnection(passed.holder))
            return
        client = socket.socket(fileno=descriptors[0])
        self._answers.learn(passed, *descriptors[1:])
        connection = HeldConnection(self, passed)
        self._held.add(connection)
        adopt(client, lambda: connection, self._tasks)
