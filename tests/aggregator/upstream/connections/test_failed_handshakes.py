"""TLS handshakes that are reset, cut, refused or never answered, while other files are open: every descriptor
is closed by its owner alone, and once."""

from __future__ import annotations

import asyncio
import os
import random
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
import pytest

from fakes.failed_handshakes import FAILURES, handshakes_that, hang
from specmux_aggregator.upstream.connections import opening
from specmux_aggregator.upstream.connections.connector import CheckedConnector

HANDSHAKES = 160
AT_ONCE = 16
PATIENCE = 0.03
"""Seconds that a handshake may take."""


@dataclass
class OpenedSockets:
    """Sockets that connections were made of, each with how often its number was given back."""

    made: list[CountedSocket] = field(default_factory=list)

    def make(self, family: socket.AddressFamily) -> socket.socket:
        self.made.append(CountedSocket(family, socket.SOCK_STREAM))
        return self.made[-1]


class CountedSocket(socket.socket):
    def __init__(self, family: socket.AddressFamily, kind: socket.SocketKind) -> None:
        super().__init__(family, kind)
        self.closed = 0
        self.detached = 0

    def _real_close(self, _ss: type[socket.socket] = socket.socket) -> None:
        self.closed += 1
        super()._real_close()  # type: ignore[misc]  # where every close of a socket ends up

    def detach(self) -> int:
        self.detached += 1
        return super().detach()


class NeighbourFiles:
    """Files that take whatever number is free, again and again, and are looked at before they are closed."""

    def __init__(self) -> None:
        self._files: list[tuple[int, os.stat_result]] = []
        self.lost = 0

    def open(self) -> None:
        file = os.memfd_create("neighbour") if random.random() < 0.5 else os.open(os.devnull, os.O_RDONLY)
        self._files.append((file, os.fstat(file)))

    def close_some(self, share: float) -> None:
        kept = []
        for file, opened in self._files:
            try:
                is_whole = os.path.samestat(os.fstat(file), opened)
            except OSError:
                is_whole = False
            self.lost += not is_whole
            if is_whole and random.random() < share:
                os.close(file)
            elif is_whole:
                kept.append((file, opened))
        self._files = kept


@asynccontextmanager
async def neighbours() -> AsyncIterator[NeighbourFiles]:
    files = NeighbourFiles()

    async def churn() -> None:
        while True:
            for _ in range(20):
                files.open()
            await asyncio.sleep(0.001)
            files.close_some(0.7)

    churning = asyncio.create_task(churn())
    try:
        yield files
    finally:
        churning.cancel()
        await asyncio.gather(churning, return_exceptions=True)
        files.close_some(1.0)


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="no memory files on this system")
@pytest.mark.parametrize("fail", FAILURES)
async def test_failed_handshake_closes_its_own_socket_once(fail: Callable[[socket.socket], None]) -> None:
    sockets = OpenedSockets()
    connector = CheckedConnector(new_socket=sockets.make, limit=AT_ONCE, ssl=trusting())
    timeout = aiohttp.ClientTimeout(total=None, connect=PATIENCE)
    with handshakes_that(fail) as port:
        async with (
            aiohttp.ClientSession(connector=connector, timeout=timeout) as session,
            neighbours() as files,
        ):

            async def ask() -> bool:
                try:
                    async with session.get(f"https://127.0.0.1:{port}/"):
                        return True
                except (aiohttp.ClientError, OSError):
                    return False

            for _ in range(HANDSHAKES // AT_ONCE):
                assert not any(await asyncio.gather(*(ask() for _ in range(AT_ONCE))))
    assert files.lost == 0
    assert len(sockets.made) >= HANDSHAKES
    assert {(made.fileno(), made.closed, made.detached) for made in sockets.made} == {(-1, 1, 0)}


def trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def test_request_that_is_given_up_in_the_handshake_closes_its_socket() -> None:
    """Cancelled at any moment of its way."""

    sockets = OpenedSockets()
    with handshakes_that(hang) as port:
        async with aiohttp.ClientSession(
            connector=CheckedConnector(new_socket=sockets.make, ssl=trusting())
        ) as session:
            for turns in range(40):
                asking = asyncio.ensure_future(session.get(f"https://127.0.0.1:{port}/"))
                for _ in range(turns):
                    await asyncio.sleep(0)
                asking.cancel()
                await asyncio.gather(asking, return_exceptions=True)
            await asyncio.sleep(0.01)
    assert len(sockets.made) > 20
    assert {(made.fileno(), made.detached) for made in sockets.made} == {(-1, 0)}


async def test_first_address_that_answers_is_taken_and_the_others_are_closed() -> None:
    sockets = OpenedSockets()
    with handshakes_that(hang) as good, socket.create_server(("127.0.0.1", 0), backlog=0) as unheard:
        closed = unheard.getsockname()[1]
        unheard.close()
        found = [(socket.AF_INET, ("127.0.0.1", port)) for port in (closed, good, good)]
        wire, address = await opening._first_connected(found, sockets.make)
        assert address[1][1] == good
        assert wire.getpeername()[1] == good
        wire.close()
        with pytest.raises(ConnectionRefusedError):
            await opening._first_connected(found[:1] * 3, sockets.make)
    assert {(made.fileno(), made.closed) for made in sockets.made} == {(-1, 1)}


async def test_addresses_are_tried_one_beside_the_other_when_one_is_silent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(opening, "STAGGER", 0.02)
    sockets = OpenedSockets()
    silent = (socket.AF_INET, ("192.0.2.1", 9))  # TEST-NET-1: nobody is there
    with handshakes_that(hang) as good:
        wire, address = await opening._first_connected(
            [silent, (socket.AF_INET, ("127.0.0.1", good))], sockets.make
        )
        assert address[1][1] == good
        wire.close()
    assert {made.fileno() for made in sockets.made} == {-1}
