"""Kept connections: none is used again once more came on it than its answers."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import aiohttp
import pytest
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader

from deadline import DEADLINE
from fakes.sending import send
from running.exchanges import by_session, exchanges_that_went_wrong
from specmux_aggregator.upstream.connections import response_reader
from specmux_aggregator.upstream.connections.connector import CheckedConnector
from specmux_aggregator.upstream.connections.response_reader import ResponseReader, stated_length

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
OTHER = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother"


@dataclass
class Server:
    """Answers with ``answer`` first, then with OK; ``stray`` comes ``pause`` seconds after the first."""

    answer: bytes = OK
    stray: bytes = b""
    pause: float = 0.01
    greeting: bytes = b""
    is_over: bool = False
    """The end of the connection is the first answer's."""
    connections: int = 0
    url: str = ""
    writers: list[asyncio.StreamWriter] = field(default_factory=list)
    tasks: list[asyncio.Task[None] | None] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.writers.append(writer)
        self.tasks.append(asyncio.current_task())
        try:
            writer.write(self.greeting)
            while True:
                await reader.readuntil(b"\r\n\r\n")
                answer, stray, self.answer, self.stray = self.answer, self.stray, OK, b""
                await send(writer, answer)
                if self.is_over:
                    break
                if stray:
                    await asyncio.sleep(self.pause)
                    await send(writer, stray)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def session_for(server: Server, **options: Any) -> AsyncIterator[aiohttp.ClientSession]:
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}/"
    try:
        async with aiohttp.ClientSession(connector=CheckedConnector(**options)) as session:
            yield session
    finally:
        listening.close()
        await asyncio.wait_for(asyncio.gather(*filter(None, server.tasks)), DEADLINE)


async def get(session: aiohttp.ClientSession, server: Server, **options: Any) -> bytes:
    async with session.get(server.url, **options) as response:
        return await response.read()


async def test_connection_is_kept_where_nothing_came_on_it() -> None:
    server = Server()
    async with session_for(server) as session:
        for _ in range(5):
            assert await get(session, server) == b"ok"
            await asyncio.sleep(0.005)
    assert server.connections == 1


@pytest.mark.parametrize(
    "answer", [OK, b'HTTP/1.1 304 Not Modified\r\nETag: "1"\r\n\r\n', b"HTTP/1.1 204 No Content\r\n\r\n"]
)
@pytest.mark.parametrize("stray", [OTHER, OTHER[:20], b"x", b"\r\n", OTHER * 10])
async def test_whatever_comes_after_an_answer_is_nobodys(answer: bytes, stray: bytes) -> None:
    server = Server(answer=answer, stray=stray)
    async with session_for(server) as session:
        await get(session, server)
        await asyncio.sleep(0.04)
        assert await get(session, server) == b"ok"
    assert server.connections == 2


async def test_what_lies_in_the_socket_unread_is_nobodys() -> None:
    server = Server()
    async with session_for(server) as session:
        await get(session, server)
        # Straight into the socket, and asked again before the event loop can have read it.
        os.write(server.writers[0].get_extra_info("socket").fileno(), OTHER)
        assert await get(session, server) == b"ok"
    assert server.connections == 2


def test_server_that_sent_too_much_gets_a_connection_for_each_request(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def scenario() -> None:
        server = Server(stray=OTHER)
        async with session_for(server) as session:
            await get(session, server)
            connector: Any = session.connector
            async with asyncio.timeout(DEADLINE):
                while not connector._record.is_distrusted:
                    await asyncio.sleep(0.01)
            for _ in range(3):
                assert await get(session, server) == b"ok"
        assert server.connections == 4

    with caplog.at_level(logging.WARNING, "specmux_cache"):
        asyncio.run(scenario())
    assert len(caplog.records) == 1


async def test_server_that_says_it_waited_too_long_is_trusted_still(caplog: pytest.LogCaptureFixture) -> None:
    server = Server(stray=b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")
    async with session_for(server) as session:
        await get(session, server)
        await asyncio.sleep(0.04)
        for _ in range(3):
            assert await get(session, server) == b"ok"
    assert server.connections == 2
    assert caplog.records == []


async def test_answer_to_nothing_asked_is_a_fault() -> None:
    server = Server(greeting=OTHER)
    async with session_for(server) as session:

        async def greeted(*_: object) -> None:
            await asyncio.sleep(0.02)

        slow = aiohttp.TraceConfig()
        slow.on_connection_create_end.append(greeted)
        slow.freeze()
        session.trace_configs.append(slow)
        with pytest.raises(aiohttp.ClientConnectionError, match="before it was asked"):
            await get(session, server)


@pytest.mark.parametrize(
    ("method", "fields"),
    [("HEAD", {}), ("GET", {"If-None-Match": '"1"'}), ("GET", {"if-modified-since": "x"})],
)
async def test_connection_is_not_kept_after_an_answer_without_body_where_that_is_asked_for(
    method: str, fields: dict[str, str]
) -> None:
    server = Server(answer=OK.removesuffix(b"ok") if method == "HEAD" else OK)
    async with session_for(server, keeps_after_no_body=False) as session:
        async with session.request(method, server.url, headers=fields):
            pass
        await get(session, server)
        await get(session, server)
    assert server.connections == 2


async def test_server_that_closes_an_idle_connection_is_asked_over_another() -> None:
    server = Server()
    async with session_for(server) as session:
        await get(session, server)
        server.writers[0].close()
        await asyncio.sleep(0.01)
        assert await get(session, server) == b"ok"


@pytest.mark.parametrize("turn", [response_reader.TURN, -1.0], ids=["at once", "piece by piece"])
def test_no_exchange_gets_anothers_answer(turn: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response_reader, "TURN", turn)
    wrong, strays = asyncio.run(exchanges_that_went_wrong(2_000, by_session(CheckedConnector)))
    assert strays > 200
    assert wrong == []


def test_aiohttps_own_connector_mixes_answers_up() -> None:
    """What CheckedConnector is for: it goes when this fails."""
    asking = by_session(aiohttp.TCPConnector)
    wrong, _ = asyncio.run(exchanges_that_went_wrong(600, asking, patience=0.05))
    assert wrong


class Wire(asyncio.Transport):
    """An open transport, of which nothing comes by itself."""

    def __init__(self, encryption: object = None) -> None:
        super().__init__({"ssl_object": encryption})
        self.is_on = True
        self.is_closed = False
        self.decrypts_later = 0

    def close(self) -> None:
        self.is_closed = True

    abort = close

    def is_closing(self) -> bool:
        return self.is_closed

    def set_read_buffer_limits(self, high: int) -> None:
        self.decrypts_later = high

    def pause_reading(self) -> None:
        self.is_on = False

    def resume_reading(self) -> None:
        self.is_on = True


class Slow(ResponseReader):
    """Writes down in which turn of the loop it parses what, instead of parsing it."""

    def __init__(self, on_stray: Callable[[], None] = lambda: None, *, encryption: object = None) -> None:
        super().__init__(on_stray)
        self.told: list[tuple[int, bytes | str]] = []
        self.turn = 0
        self.wire = Wire(encryption)
        self.connection_made(self.wire)
        self.answer(EMPTY_PAYLOAD)

    def answer(self, body: StreamReader | None) -> None:
        """Have the last message this body."""
        self._messages.body = body

    def _feed(self, data: bytes) -> None:
        self.told.append((self.turn, data))

    def _lose(self) -> None:
        self.told.append((self.turn, "lost"))
        super()._lose()


async def test_what_takes_long_to_parse_is_parsed_in_turns_and_in_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(response_reader, "TURN", -1.0)
    slow = Slow()
    sent = bytes(range(256)) * 256
    slow.data_received(sent)
    assert not slow.wire.is_on
    slow.data_received(b"more")
    slow.eof_received()
    slow.connection_lost(None)
    for slow.turn in range(1, 40):
        await asyncio.sleep(0)
    data = [item for _, item in slow.told if isinstance(item, bytes)]
    assert b"".join(data) == sent + b"more"
    assert slow.told[-1][1] == "lost"
    assert len({turn for turn, _ in slow.told}) > 10


class Costly(Slow):
    """Each piece takes the processor as long as chunks of a byte do."""

    def _feed(self, data: bytes) -> None:
        super()._feed(data)
        end = time.thread_time() + 0.003
        while time.thread_time() < end:
            pass


async def test_bytes_that_cost_much_have_a_small_share_of_the_loop() -> None:
    costly = Costly()
    began = time.monotonic()
    costly.data_received(bytes(1000))
    assert not costly.wire.is_on
    costly.data_received(b"a" * 5_000)
    costly.data_received(b"more")
    async with asyncio.timeout(DEADLINE):
        while costly.told[-1][1] != b"more":
            await asyncio.sleep(0.001)
    data = [item for _, item in costly.told if isinstance(item, bytes)]
    assert b"".join(data) == bytes(1000) + b"a" * 5_000 + b"more"
    assert time.monotonic() - began > 0.2
    async with asyncio.timeout(DEADLINE):
        while not costly.wire.is_on:
            await asyncio.sleep(0.001)


async def test_plain_bytes_never_wait() -> None:
    slow = Slow()
    for _ in range(50):
        slow.data_received(bytes(256 * 1024))
        for _ in range(100):  # turns, and no seconds
            await asyncio.sleep(0)
        assert slow.wire.is_on
        slow.told.clear()


async def test_others_have_their_turn_after_each_read_of_encrypted_bytes() -> None:
    slow = Slow(encryption=object())
    assert slow.wire.decrypts_later == response_reader.ENCRYPTED
    slow.begin(has_body=True)
    slow.answer(None)  # no answer has begun
    slow.data_received(b"x")
    assert not slow.wire.is_on
    await asyncio.sleep(0)
    assert slow.wire.is_on
    slow.answer(EMPTY_PAYLOAD)  # it is whole: paused, the connection would be taken for one with more
    slow.data_received(b"y")
    assert slow.wire.is_on


def test_connection_that_is_collected_behind_its_loop_has_no_end_to_wait_for() -> None:
    async def opened() -> ResponseReader:
        return ResponseReader(lambda: None)

    assert asyncio.run(opened()).closed is None


async def test_a_connection_that_ends_while_it_waits_is_told_so() -> None:
    costly = Costly()
    costly.data_received(bytes(1000))
    costly.connection_lost(None)
    assert costly.told[-1][1] == "lost"


async def test_what_is_not_parsed_when_the_answer_is_whole_is_stray(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response_reader, "TURN", -1.0)
    strays: list[int] = []
    slow = Slow(lambda: strays.append(1))
    slow.data_received(b"x" * 20_000)
    slow.connection_lost(None)
    slow.rest()
    assert (slow.transport, strays) == (None, [1])
    assert slow.told[-1][1] == "lost"
    await asyncio.sleep(0)


async def test_what_is_not_parsed_of_an_answer_that_was_given_up_says_nothing_about_the_server(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(response_reader, "TURN", -1.0)
    strays: list[int] = []
    slow = Slow(lambda: strays.append(1))
    slow.answer(None)
    slow.data_received(b"x" * 20_000)
    slow.rest()
    assert (slow.transport, strays) == (None, [])
    await asyncio.sleep(0)


@pytest.mark.parametrize("pause", [0.0, 0.05], ids=["at once", "as it comes"])
async def test_server_is_trusted_still_when_a_request_was_given_up(
    pause: float, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    server = Server(answer=head + b"1\r\na\r\n" * 60_000)
    async with session_for(server) as session:
        monkeypatch.setattr(response_reader, "TURN", -1.0)  # the loop is starved: each piece is the last
        async with session.get(server.url):
            await asyncio.sleep(pause)
        monkeypatch.undo()
        for _ in range(3):
            assert await get(session, server) == b"ok"
    assert server.connections == 2
    assert not [line for line in caplog.messages if "more than its answers" in line]


@pytest.mark.parametrize("turn", [response_reader.TURN, -1.0], ids=["at once", "piece by piece"])
@pytest.mark.parametrize("size", [1, 4_096, 300_000, 5_000_000])
async def test_large_answers_come_whole(turn: float, size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(response_reader, "TURN", turn)

    body = bytes(size)
    for framing in (b"Content-Length: %d\r\n\r\n" % size, b"\r\n"):
        server = Server(answer=b"HTTP/1.1 200 OK\r\n" + framing + body)
        server.is_over = framing == b"\r\n"
        async with session_for(server) as session:
            assert await get(session, server) == body


HEAD = b"HTTP/1.1 200 OK\r\n%sServer: a\r\n\r\n"
HEADED = len(HEAD % b"Content-Length: 7\r\n") + 7


@pytest.mark.parametrize(
    ("data", "length"),
    [
        (HEAD % b"Content-Length: 7\r\n" + b"1234567", HEADED),
        (HEAD % b"Content-Length: 7\r\n", HEADED),
        (HEAD % b"content-length:7 \r\n", HEADED),
        (HEAD % b"", 0),
        (HEAD % b"Content-Length: 7\r\nContent-Length: 7\r\n", 0),
        (HEAD % b"Content-Length: 7\r\nTransfer-Encoding: chunked\r\n", 0),
        (HEAD % b"Content-Length: 7\r\nX: a\r\n Transfer-Encoding: chunked\r\n", 0),
        (HEAD % b"Content-Length: 7,7\r\n", 0),
        (HEAD % b"Content-Length: +7\r\n", 0),
        (HEAD % (b"X: a\r\n" * 5000 + b"Content-Length: 7\r\n"), 0),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", 0),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + HEAD % b"Content-Length: 7\r\n", 0),
        (b"HTTP/1.1 200 OK\nContent-Length: 7\n\n", 0),
        (b"HTTP/1.1 200 OK\r\nContent-Le", 0),
        (b"", 0),
    ],
)
def test_a_length_is_told_by_a_usual_head_alone(data: bytes, length: int) -> None:
    assert stated_length(data) == length


async def test_a_body_of_a_told_length_is_passed_on_as_it_comes_and_what_follows_in_pieces() -> None:
    slow = Slow()
    head = HEAD % b"Content-Length: 100000\r\n"
    slow.begin(has_body=True)
    for data in (head + bytes(50_000), bytes(50_000 + 5000)):
        slow.data_received(data)
    received = [len(data) for _, data in slow.told]
    assert received == [len(head) + 50_000, 50_000, 2048, 5000 - 2048]
    slow.told.clear()
    slow.begin(has_body=False)
    slow.data_received(head + bytes(5000))
    assert len(slow.told[0][1]) == 2048
