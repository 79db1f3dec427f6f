"""How many connections an address may hold, and how many requests may wait."""

from __future__ import annotations

import asyncio
import json
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest

from deadline import DEADLINE
from running.serving import (
    TIERS,
    FakeService,
    Running,
    eventually,
    read_all,
    read_answer,
    request,
    running,
)
from specmux_aggregator.config.settings import ListenSettings
from specmux_aggregator.http.messages import Request
from specmux_aggregator.http.prepared_answer import PreparedAnswer, prepare, refusal
from specmux_aggregator.server.protocols import Pending, Reply

on_every_tier = pytest.mark.parametrize("tier", TIERS)


class Probed(FakeService):
    """A service whose health has to be waited for, as the real one's has."""

    def immediate(self, asked: Request) -> PreparedAnswer | Pending:
        return Pending(asked) if asked.path in ("/livez", "/readyz") else super().immediate(asked)


def connect_from(started: Running, address: str) -> socket.socket:
    return socket.create_connection(("127.0.0.1", started.port), DEADLINE, source_address=(address, 0))


@contextmanager
def crowd(started: Running, size: int, *, beside: int = 0) -> Iterator[None]:
    """As many clients wait for an answer; they get it when the context ends. ``beside``: others wait."""
    with ExitStack() as stack:
        clients = [stack.enter_context(started.connect()) for _ in range(size)]
        for client in clients:
            client.sendall(request("/hang"))
        eventually(lambda: started.counts.in_flight == size + beside)
        yield
        started.service.released.set()
        for client in clients:
            assert b" 200 OK" in read_answer(client)


@on_every_tier
def test_address_with_all_its_connections_gets_no_more_while_others_do(tier: str) -> None:
    with running(tier, max_connections_per_address=2) as started:
        with ExitStack() as stack:
            held = [stack.enter_context(connect_from(started, "127.0.0.2")) for _ in range(2)]
            eventually(lambda: started.counts.connections == 2)
            with connect_from(started, "127.0.0.2") as third:
                assert read_all(third) == b""
            with connect_from(started, "127.0.0.3") as other:
                other.sendall(request())
                assert b" 200 OK" in read_answer(other)
            for client in held:
                client.sendall(request())
                assert b" 200 OK" in read_answer(client)
        eventually(lambda: started.counts.connections == 0)
        with connect_from(started, "127.0.0.2") as again:
            again.sendall(request())
            assert b" 200 OK" in read_answer(again)
        counts = started.counts
        assert (counts.connections_refused, counts.connections_refused_by_address) == (0, 1)


def test_address_has_no_cap_of_its_own_when_the_setting_is_zero() -> None:
    with running(max_connections_per_address=0, max_connections=20) as started, ExitStack() as stack:
        for _ in range(20):
            client = stack.enter_context(started.connect())
            client.sendall(request())
            assert b" 200 OK" in read_answer(client)
        assert started.counts.connections_refused_by_address == 0


def test_default_leaves_half_of_all_connections_to_others() -> None:
    listen = ListenSettings()
    assert listen.max_connections_per_address * 2 == listen.max_connections


@on_every_tier
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_request_that_would_wait_is_refused_when_as_many_as_may_wait(tier: str, method: str) -> None:
    with running(tier, max_in_flight=2) as started, started.connect() as client:
        with crowd(started, 2):
            client.sendall(request("/slow", method=method))
            head, _, body = read_answer(client, is_head=method == "HEAD").partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 429 Too Many Requests\r\n")
            assert b"\r\nRetry-After: 1\r\n" in head
            assert b"\r\nCache-Control: no-store\r\n" in head
            if method == "HEAD":
                assert body == b""
            else:
                status = json.loads(body)
                assert (status["kind"], status["code"]) == ("Status", 429)
                assert status["reason"] == "TooManyRequests"
            assert started.counts.requests_refused == 1
            # What is at hand waits for nobody, and takes nothing from those who wait.
            client.sendall(request("/a"))
            assert b" 200 OK" in read_answer(client)
        client.sendall(request("/slow"))
        assert b" 200 OK" in read_answer(client)
        assert started.counts.requests_refused == 1


def test_health_is_answered_however_many_wait() -> None:
    with running("parsed", Probed(), max_in_flight=1) as started, crowd(started, 1):
        for path in ("/livez", "/readyz", "/livez?verbose"):
            assert b" 200 OK" in started.exchange(request(path, close=True))
        assert b" 429 " in started.exchange(request("/slow", close=True))
        assert started.counts.requests_refused == 1


def test_any_number_may_wait_when_the_setting_is_zero() -> None:
    with running("parsed", max_in_flight=0) as started, crowd(started, 50):
        assert b" 200 OK" in started.exchange(request("/slow", close=True))


def test_place_of_a_client_that_left_is_free_again() -> None:
    with running("parsed", max_in_flight=1) as started:
        with started.connect() as client:
            client.sendall(request("/hang"))
            eventually(lambda: started.counts.in_flight == 1)
            assert b" 429 " in started.exchange(request("/slow", close=True))
            # A reset; a client that only closes its side may still read its answer.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        eventually(lambda: started.counts.in_flight == 0)
        assert b" 200 OK" in started.exchange(request("/slow", close=True))


class SlowGuard:
    """Thinks about everybody until it is released, then turns them away."""

    def __init__(self) -> None:
        self.released = threading.Event()

    def permits(self, message: Any, connection: Any) -> None:
        return None

    async def refusal(self, message: Any, connection: Any) -> PreparedAnswer:
        while not self.released.is_set():
            await asyncio.sleep(0.01)
        return refusal(401, "Unauthorized", "who are you?")


def test_those_whose_leave_is_asked_for_count_as_waiting() -> None:
    with running("parsed", max_in_flight=1) as started, started.connect() as client:
        guard = SlowGuard()
        started.server._dispatch._guard = guard
        client.sendall(request())
        eventually(lambda: started.counts.in_flight == 1)
        assert b" 429 " in started.exchange(request(close=True))
        guard.released.set()
        assert b" 401 " in read_answer(client)


class SilentHandler:
    """Claims what is below /apis, and does not answer until it may."""

    def __init__(self) -> None:
        self.asked = 0
        self.released = threading.Event()

    def claims(self, message: Any) -> bool:
        return bool(message.path.startswith("/apis"))

    async def stream(self, asked: Any) -> Any:
        self.asked += 1
        while not self.released.is_set():
            await asyncio.sleep(0.01)
        prepared = prepare(200, [], b"streamed")
        return Reply(prepared, is_last=True)


def test_requests_for_a_silent_backend_keep_nobody_else_from_waiting() -> None:
    with running("parsed", max_in_flight=1) as started, ExitStack() as stack:
        streaming = SilentHandler()
        started.server._dispatch._streaming = (streaming,)
        held = [stack.enter_context(started.connect()) for _ in range(3)]
        for client in held:
            client.sendall(request("/apis/a/v1/b"))
        eventually(lambda: streaming.asked == 3)
        assert b" 200 OK" in started.exchange(request("/slow", close=True))
        with crowd(started, 1, beside=3):
            assert b" 429 " in started.exchange(request("/slow", close=True))
        streaming.released.set()
        for client in held:
            assert b"streamed" in read_all(client)
