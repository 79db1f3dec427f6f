"""Bodies of a told length, read into their place."""

from __future__ import annotations

import asyncio
import ctypes
import logging
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import trustme
from aiohttp.connector import Connection

from deadline import DEADLINE
from specmux_aggregator.upstream.connections import response_reader
from specmux_aggregator.upstream.connections.connector import CheckedConnector
from specmux_aggregator.upstream.connections.response_reader import reader_of
from specmux_aggregator.upstream.connections.whole_body import Filling, whole_body

Serve = Callable[[asyncio.StreamWriter], Awaitable[bool | None]]


def pattern(size: int) -> bytes:
    return (bytes(range(251)) * (size // 251 + 1))[:size]


@dataclass
class Server:
    """Answers each request by ``answers``, in turn; the last of them again and again."""

    answers: list[Serve]
    connections: int = 0
    url: str = ""
    tasks: list[asyncio.Task[None] | None] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.tasks.append(asyncio.current_task())
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                if await answer(writer):
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


def whole(body: bytes, *, piece: int = 1 << 30, stray: bytes = b"", pause: float = 0.0) -> Serve:
    """The head, then the body in pieces, with ``stray`` right behind it or ``pause`` seconds later."""

    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body))
        sent = body if pause else body + stray
        for start in range(0, len(sent), piece):
            writer.write(sent[start : start + piece])
            await writer.drain()
            await asyncio.sleep(0)
        if pause:
            await asyncio.sleep(pause)
            writer.write(stray)

    return answer


def cut(size: int, sent: int) -> Serve:
    async def answer(writer: asyncio.StreamWriter) -> bool:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + pattern(sent))
        await writer.drain()
        await asyncio.sleep(0.02)
        return True

    return answer


def silent(size: int, sent: int) -> Serve:
    async def answer(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + pattern(sent))

    return answer


@asynccontextmanager
async def session_for(server: Server, authority: trustme.CA | None = None) -> AsyncIterator[Any]:
    ours: ssl.SSLContext | None = None
    trust: ssl.SSLContext | None = None
    if authority is not None:
        ours, trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
        authority.issue_cert("localhost").configure_cert(ours)
        authority.configure_trust(trust)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=ours)
    scheme = "http" if authority is None else "https"
    server.url = f"{scheme}://localhost:{listening.sockets[0].getsockname()[1]}/"
    try:
        async with aiohttp.ClientSession(connector=Holding(ssl=trust)) as session:
            yield session
    finally:
        listening.close()
        await asyncio.wait_for(asyncio.gather(*filter(None, server.tasks), return_exceptions=True), DEADLINE)


class Holding(CheckedConnector):
    """As its user does who takes bodies whole."""

    async def connect(self, *request: Any, **options: Any) -> Connection:
        connection = await super().connect(*request, **options)
        reader = reader_of(connection)
        assert reader is not None
        reader.hold_back()
        return connection


async def body_of(session: aiohttp.ClientSession, server: Server, **options: Any) -> bytes:
    async with session.get(server.url, **options) as response:
        assert response.content_length is not None
        return await whole_body(response.connection, response.content, response.content_length)


def fillings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Bytes of each body that are read into their place."""
    sizes: list[int] = []
    begin = Filling.begin

    def counted(self: Filling, room: memoryview) -> None:
        sizes.append(len(room))
        begin(self, room)

    monkeypatch.setattr(Filling, "begin", counted)
    return sizes


@pytest.mark.parametrize("authority", [None, trustme.CA()], ids=["plain", "TLS"])
@pytest.mark.parametrize("piece", [1 << 30, 70_000, 1_000], ids=["at once", "in pieces", "in small pieces"])
@pytest.mark.parametrize("size", [0, 1, 50_000, 300_000, 2_000_000])
async def test_bodies_come_whole_and_their_connection_is_kept(
    size: int, piece: int, authority: trustme.CA | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    read_into_place = fillings(monkeypatch)

    server = Server([whole(pattern(size), piece=piece)])
    async with session_for(server, authority) as session:
        for _ in range(3):
            assert await body_of(session, server) == pattern(size)
    assert server.connections == 1
    if size < 30_000 or authority is not None:
        assert not read_into_place
    elif size == 2_000_000:
        assert len(read_into_place) == 3


@pytest.mark.parametrize("authority", [None, trustme.CA()], ids=["plain", "TLS"])
async def test_a_connection_whose_bytes_cost_much_is_kept_all_the_same(
    authority: trustme.CA | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(response_reader, "PLAIN", 1 << 60)
    monkeypatch.setattr(response_reader, "DEBT", 0.0)
    server = Server([whole(pattern(20_000), piece=1_000)])
    async with session_for(server, authority) as session:
        for _ in range(3):
            assert await body_of(session, server) == pattern(20_000)
    assert server.connections == 1


async def test_a_body_is_not_copied_from_the_place_it_was_read_into(monkeypatch: pytest.MonkeyPatch) -> None:
    places: list[int] = []
    begin = Filling.begin

    def noted(self: Filling, room: memoryview) -> None:
        places.append(ctypes.addressof(ctypes.c_char.from_buffer(room)))
        begin(self, room)

    monkeypatch.setattr(Filling, "begin", noted)

    server = Server([whole(pattern(500_000))])
    async with session_for(server) as session:
        body = await body_of(session, server)
    assert body == pattern(500_000)
    assert id(body) < places.pop() < id(body) + len(body)  # CPython's id is the address


@pytest.mark.parametrize("authority", [None, trustme.CA()], ids=["plain", "TLS"])
@pytest.mark.parametrize("pause", [0.0, 0.05], ids=["in one", "later"])
@pytest.mark.parametrize("stray", [b"x", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother"])
@pytest.mark.parametrize("size", [100, 1_000_000])
async def test_what_follows_a_body_is_nobodys_answer(
    size: int, stray: bytes, pause: float, authority: trustme.CA | None
) -> None:
    server = Server([whole(pattern(size), stray=stray, pause=pause), whole(b"second")])
    async with session_for(server, authority) as session:
        assert await body_of(session, server) == pattern(size)
        await asyncio.sleep(2 * pause)
        assert await body_of(session, server) == b"second"
    assert server.connections == 2


@pytest.mark.parametrize("sent", [10, 400_000, 999_999])
async def test_a_body_that_is_cut_is_none(sent: int) -> None:
    server = Server([cut(1_000_000, sent), whole(b"second")])
    async with session_for(server) as session:
        with pytest.raises(aiohttp.ClientPayloadError):
            await body_of(session, server)
        assert await body_of(session, server) == b"second"


@pytest.mark.parametrize("sent", [0, 10, 400_000])
async def test_a_body_that_stays_away_is_waited_for_as_long_as_any_other(sent: int) -> None:
    server = Server([silent(1_000_000, sent), whole(b"second")])
    timeout = aiohttp.ClientTimeout(total=None, sock_read=0.2)
    async with session_for(server) as session:
        with pytest.raises(aiohttp.SocketTimeoutError):
            await body_of(session, server, timeout=timeout)
        assert await body_of(session, server) == b"second"
    assert server.connections == 2


@pytest.mark.parametrize("authority", [None, trustme.CA()], ids=["plain", "TLS"])
@pytest.mark.parametrize("sent", [0, 1_000, 20_000_000])
def test_a_body_that_is_given_up_ends_its_connection_and_says_nothing_about_the_server(
    sent: int, authority: trustme.CA | None, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        server = Server([silent(50_000_000, sent), whole(b"second")])
        async with session_for(server, authority) as session:
            async with session.get(server.url) as response:
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(0.1):
                        await whole_body(response.connection, response.content, 50_000_000)
            for _ in range(3):
                assert await body_of(session, server) == b"second"
        assert server.connections == 2

    with caplog.at_level(logging.WARNING):
        asyncio.run(scenario())
    assert not caplog.messages


async def test_a_told_length_takes_no_memory_before_its_bytes_come() -> None:
    server = Server([silent(60_000_000, 10)])
    async with session_for(server) as session:
        before = resident()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3) as deadline:
                asking = asyncio.ensure_future(body_of(session, server))
                await asyncio.sleep(0.2)
                grown = resident() - before
                deadline.reschedule(asyncio.get_running_loop().time())
                await asking
    assert grown < 10_000_000


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096
