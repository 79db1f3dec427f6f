"""Connections that are kept between requests, and none of which is used once more came on it than its
answers."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from deadline import DEADLINE
from specmux_cache.errors import BadAnswer, ServerUnreachable
from specmux_cache.http import transport
from specmux_cache.http.answer_reader import unpack_body
from specmux_cache.http.caching import Answer
from specmux_cache.http.server import Server
from specmux_cache.http.transport import Transport
from specmux_cache.sync import run_in_place

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
NOT_MODIFIED = b"HTTP/1.1 304 Not Modified\r\n\r\n"
OTHER = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother"
HEAD_OF_MUCH = b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n"
PAUSE = 0.1
"""Seconds after which what was sent is in the other side's socket."""


class Peer:
    """Answers each request with the next of ``script``: pieces that are sent one after the other, floats are
    pauses; None ends the connection."""

    def __init__(self, *script: tuple[bytes | float | None, ...]) -> None:
        self.script = list(script)
        self.connections = 0
        self.heads: list[bytes] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join(DEADLINE)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            with connection, contextlib.suppress(ConnectionError):
                while self.script and (head := _head(connection)):
                    self.heads.append(head)
                    if not _answered(connection, self.script.pop(0)):
                        break


def _head(connection: socket.socket) -> bytes:
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        piece = connection.recv(65536)
        if not piece:
            return b""
        head += piece
    return head


def _answered(connection: socket.socket, answer: tuple[bytes | float | None, ...]) -> bool:
    for piece in answer:
        if piece is None:
            return False
        if isinstance(piece, bytes):
            connection.sendall(piece)
        elif piece > 60:  # until the client goes
            connection.recv(1)
            return False
        else:
            time.sleep(piece)
    return True


@contextmanager
def asking(peer: Peer, **options: float) -> Iterator[Callable[[str], Answer]]:
    server = Server.parse(f"http://127.0.0.1:{peer.port}/base")
    given = {"connect_timeout": 2.0, "timeout": 5.0, **options}
    own = Transport(server, headers={"X-One": "1"}, max_body_bytes=10_000, **given)
    try:
        yield lambda target: run_in_place(own.get(server.url(target), (("accept", "a/b"),)))
    finally:
        run_in_place(own.close())
        peer.close()


def test_one_connection_does_for_all_requests() -> None:
    peer = Peer((OK,), (NOT_MODIFIED,), (OK[:9], 0.01, OK[9:]), (OK, None))
    with asking(peer) as ask:
        assert [ask(f"/api?n={number}").status for number in range(4)] == [200, 304, 200, 200]
    assert peer.connections == 1
    lines = peer.heads[0].split(b"\r\n")
    assert lines[0] == b"GET /base/api?n=0 HTTP/1.1"
    fields = dict(line.lower().split(b": ", 1) for line in lines[1:] if line)
    assert fields[b"host"] == b"127.0.0.1:%d" % peer.port
    assert (fields[b"accept"], fields[b"x-one"]) == (b"a/b", b"1")
    assert fields[b"accept-encoding"] == b"zstd, gzip"


@pytest.mark.parametrize(
    "first",
    [
        (OK + OTHER,),
        (OK, OTHER),
        (NOT_MODIFIED + b"{}",),
        (OK + b"HTTP/1.1 200 OK\r\n", 0.05, b"Content-Length: 5\r\n\r\nother"),
        (OK, PAUSE, OTHER),
        (OK, None),
        (b"HTTP/1.0 200 OK\r\n\r\nok", None),
        (b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok", None),
    ],
)
def test_what_came_before_a_request_is_not_its_answer(first: tuple[bytes | float | None, ...]) -> None:
    peer = Peer((*first, None) if first[-1] is not None else first, (OK,), (OK,))
    with asking(peer) as ask:
        ask("/api")
        time.sleep(3 * PAUSE)
        assert [ask("/api").body for _ in range(2)] == [b"ok", b"ok"]
    assert peer.connections >= 2


def test_a_server_that_sends_more_than_its_answers_is_not_trusted_again() -> None:
    peer = Peer((OK + OTHER, PAUSE, None), (OK, PAUSE, None), (OK, PAUSE, None))
    with asking(peer) as ask:
        assert [ask("/api").body for _ in range(3)] == [b"ok"] * 3
    assert peer.connections == 3


def test_a_connection_that_the_server_closed_while_idle_costs_it_no_trust() -> None:
    peer = Peer((OK, None), (OK,), (OK,), (OK,))
    with asking(peer) as ask:
        ask("/api")
        time.sleep(3 * PAUSE)
        assert [ask("/api").body for _ in range(3)] == [b"ok"] * 3
    assert peer.connections == 2


def test_a_connection_that_was_idle_for_long_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands between may have forgotten it, and would drop the request."""
    monkeypatch.setattr(transport, "IDLE_MAX", 0.0)
    peer = Peer((OK,), (OK,))
    with asking(peer) as ask:
        assert [ask("/api").body for _ in range(2)] == [b"ok"] * 2
    assert peer.connections == 2


def test_every_address_of_a_name_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """RFC 8305: one refuses, one never answers, the last is the server."""
    peer = Peer((OK,))
    with socket.create_server(("127.0.0.1", 0), backlog=0) as deaf, contextlib.ExitStack() as filling:
        for _ in range(4):  # a full backlog: the kernel drops what comes then
            waiting = filling.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(deaf.getsockname())
        refusing = socket.create_server(("127.0.0.1", 0))
        ports = [refusing.getsockname()[1], deaf.getsockname()[1], peer.port]
        refusing.close()
        found = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", port)) for port in ports]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        with asking(peer, connect_timeout=60.0, timeout=60.0) as ask:
            assert ask("/api").body == b"ok"


def test_a_name_that_is_looked_up_for_ever_costs_an_event_loop_no_more_than_the_timeout(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given_up = threading.Event()

    def look_up(*_: object, **__: object) -> list[object]:
        given_up.wait(DEADLINE)
        return []

    async def scenario() -> None:
        server = Server.parse("http://name.example")
        own = Transport(
            server, connect_timeout=0.1, timeout=0.1, max_body_bytes=1, threads=ThreadPoolExecutor(1)
        )
        with pytest.raises(ServerUnreachable, match=r"no whole answer within 0\.1 s"):
            await own.get(server.url("/api"), ())
        assert not given_up.is_set()
        given_up.set()
        await own.close()

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    asyncio.run(scenario())


@pytest.mark.parametrize("answer", [(), (OK[:20],), (HEAD_OF_MUCH, b"x" * 9)], ids=["head", "half", "body"])
def test_close_ends_what_runs(answer: tuple[bytes, ...]) -> None:
    """Long before its timeout, and every thread with it."""
    peer = Peer((*answer, 3600.0))

    async def scenario() -> None:
        server = Server.parse(f"http://127.0.0.1:{peer.port}")
        own = Transport(
            server,
            connect_timeout=1800,
            timeout=1800,
            max_body_bytes=10_000,
            threads=ThreadPoolExecutor(1),
        )
        running, queued = (asyncio.create_task(own.get(server.url("/api"), ())) for _ in range(2))
        while not peer.heads:
            await asyncio.sleep(0.01)
        async with asyncio.timeout(DEADLINE):
            await own.close()
        with pytest.raises((ServerUnreachable, BadAnswer)):
            await running
        with pytest.raises((ServerUnreachable, asyncio.CancelledError)):
            await queued

    asyncio.run(scenario())
    peer.close()


def test_a_connection_that_ends_as_it_is_asked_is_replaced_once() -> None:
    peer = Peer((OK,), (None,), (OK,), (None,), (None,), (OK,))
    with asking(peer) as ask:
        assert [ask("/api").body for _ in range(2)] == [b"ok"] * 2
        with pytest.raises(ServerUnreachable, match="closed the connection"):
            ask("/api")
        assert ask("/api").body == b"ok"


@pytest.mark.parametrize("drip", [b"H", b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 102 Processing\r\n\r\n"])
def test_a_drip_ends_with_its_deadline(drip: bytes) -> None:
    peer = Peer((*(drip, 0.05) * 10_000, None))  # for longer than a test may take
    with asking(peer, timeout=0.3) as ask, pytest.raises((ServerUnreachable, BadAnswer)):
        ask("/api")


def test_interim_answers_have_an_end() -> None:
    peer = Peer((b"HTTP/1.1 103 Early Hints\r\n\r\n" * 40, OK))
    with asking(peer) as ask, pytest.raises(BadAnswer):
        ask("/api")


@pytest.mark.parametrize("value", ["a\r\nX-Two: 2", "a\nb"])
def test_a_field_that_would_be_two_is_not_sent(value: str) -> None:
    peer = Peer((OK,))
    with asking(peer):
        server = Server.parse(f"http://127.0.0.1:{peer.port}")
        own = Transport(server, connect_timeout=1, timeout=1, max_body_bytes=100)
        with pytest.raises(ServerUnreachable):
            run_in_place(own.get(server.url("/api"), (("accept", value),)))
        run_in_place(own.close())
    assert peer.heads == []


HEAD = b"HTTP/1.1 200 OK\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (CHUNKED + b"2;a=b\r\nok\r\n00\r\nTrailer: x\r\n\r\n", b"ok"),
        (CHUNKED + b"1\r\no\r\n1 \r\nk\r\n0\r\n\r\n", b"ok"),
        (CHUNKED + b"A\r\n0123456789\r\n0\r\n\r\n", b"0123456789"),
        (b"HTTP/1.1 200\nContent-Length:2\t\n\nok", b"ok"),
        (HEAD + b"X: \xff\xc3\xa9\r\n\r\nto the end", b"to the end"),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", b"ok"),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\n", b""),
        (b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" + OK, b"ok"),
    ],
)
def test_answer_is_read_to_its_end(answer: bytes, body: bytes) -> None:
    with asking(Peer((*(answer[at : at + 7] for at in range(0, len(answer), 7)), None))) as ask:
        assert ask("/api").body == body


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 099 OK\r\n\r\n",
        b"ICY 200 OK\r\n\r\n",
        HEAD + b"Content-Length: 2\r\n folded\r\n\r\nok",
        HEAD + b"Content-Length : 2\r\n\r\nok",
        HEAD + b"Content-Length\r\n\r\nok",
        HEAD + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nok",
        HEAD + b"Content-Length: +2\r\n\r\nok",
        HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        HEAD + b"X: a\rb\r\n\r\nok",
        HEAD + b"X: " + b"a" * 70_000 + b"\r\n\r\nok",
        HEAD + b"X: a\r\n" * 101 + b"\r\nok",
        HEAD + b"Content-Length: 3\r\n\r\nok",
        CHUNKED + b"2\r\nok\r\n",
        CHUNKED + b"2\r\nokay\r\n0\r\n\r\n",
        CHUNKED + b"-2\r\nok\r\n0\r\n\r\n",
        CHUNKED + b"0x2\r\nok\r\n0\r\n\r\n",
        CHUNKED + b"\r\nok\r\n0\r\n\r\n",
        CHUNKED + b"0\r\n" + b"X: a\r\n" * 101 + b"\r\n",
        HEAD + b"Content-Length: 10001\r\n\r\n" + b"a" * 10_001,
        CHUNKED + b"2711\r\n" + b"a" * 10_001 + b"\r\n0\r\n\r\n",
    ],
)
def test_answer_whose_end_is_not_known_is_refused(answer: bytes) -> None:
    with asking(Peer((answer, None))) as ask, pytest.raises(BadAnswer):
        ask("/api")


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200 OK", HEAD + b"Content-Length: 2\r\n"])
def test_connection_that_ends_before_an_answer_is_named(answer: bytes) -> None:
    with asking(Peer((answer, None))) as ask, pytest.raises(ServerUnreachable, match="closed the connection"):
        ask("/api")


@pytest.mark.parametrize("rest", [b"\0", b"more", gzip.compress(b"second", mtime=0)])
def test_bytes_after_a_gzip_stream_are_refused(rest: bytes) -> None:
    """They would be lost, and the body would be another than the server meant."""
    answer = Answer(200, (("content-encoding", "gzip"),), gzip.compress(b"first") + rest, 0.0, 0.0)
    with pytest.raises(BadAnswer, match="could not be decompressed"):
        unpack_body(answer, 1 << 20, "http://one.test/")
