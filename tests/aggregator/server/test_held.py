"""What a connection may hold of requests that are not answered, and what all may."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

from running.serving import TIERS, Running, eventually, read_all, read_answer, request, running
from running.tiers_in_memory import Transport
from specmux_aggregator.server import connections
from specmux_aggregator.server import input_limits as held
from specmux_aggregator.server.input_limits import HEAD_MAX, PAUSE_AT

on_every_tier = pytest.mark.parametrize("tier", TIERS)

FIELD = 8_000


def head(size: int, path: str = "/a") -> bytes:
    """A request whose head has so many bytes."""
    start = f"GET {path} HTTP/1.1\r\nHost: a\r\n".encode()
    lines, left = [], size - len(start) - 2
    while left:
        length = min(left, FIELD) if left - FIELD not in range(1, 8) else left // 2
        lines.append(b"X: " + b"x" * (length - 5) + b"\r\n")
        left -= length
    data = start + b"".join(lines) + b"\r\n"
    assert len(data) == size
    return data


def cost(started: Running) -> int:
    shared: Any = started.server._connections
    return int(shared.held.cost)


@contextlib.contextmanager
def unread(started: Running) -> Iterator[socket.socket]:
    """A client that reads nothing of an answer that is larger than what the kernel takes."""
    with started.connect(receive_buffer=4096) as client:
        client.sendall(request("/big") * 8)
        time.sleep(0.1)
        yield client


@on_every_tier
@pytest.mark.parametrize("size", [1_000, 20_000, HEAD_MAX - 1, HEAD_MAX])
def test_head_within_the_bound_is_answered(tier: str, size: int) -> None:
    with running(tier) as started, started.connect() as client:
        for _ in range(3):
            client.sendall(head(size))
            assert b" 200 OK" in read_answer(client)
        client.sendall(request())
        assert b" 200 OK" in read_answer(client)


@on_every_tier
@pytest.mark.parametrize("size", [HEAD_MAX + 1, HEAD_MAX + 100, 80_000, 120_000, 900_000])
def test_head_above_the_bound_is_431_and_the_end(tier: str, size: int) -> None:
    with running(tier) as started:
        received = started.exchange(head(size))
        assert received.startswith(b"HTTP/1.1 431 Request Header Fields Too Large\r\n")
        assert received.count(b"HTTP/1.1") == 1
        assert started.counts.malformed == 1
        eventually(lambda: cost(started) == 0)


@on_every_tier
def test_head_above_the_bound_is_refused_before_its_end(tier: str) -> None:
    with running(tier) as started, started.connect() as client:
        client.sendall(head(HEAD_MAX + 20_000)[:-2])
        assert read_all(client).startswith(b"HTTP/1.1 431 ")


@on_every_tier
def test_head_above_the_bound_behind_others_is_answered_in_order(tier: str) -> None:
    with running(tier) as started:
        received = started.exchange(head(1_000) + head(50_000) + head(HEAD_MAX + 1) + request())
        assert [int(part[:3]) for part in received.split(b"HTTP/1.1 ")[1:]] == [200, 200, 431]


@on_every_tier
def test_client_that_closes_its_side_behind_a_head_above_the_bound_has_all_its_answers(tier: str) -> None:
    with running(tier) as started:
        received = started.exchange(request("/slow") + request() + head(HEAD_MAX + 1), half_close=True)
        assert [int(part[:3]) for part in received.split(b"HTTP/1.1 ")[1:]] == [200, 200, 431]


@on_every_tier
def test_bound_is_that_of_one_head_and_not_of_several(tier: str) -> None:
    with running(tier) as started:
        received = started.exchange(head(30_000) * 10 + request(close=True))
        assert received.count(b" 200 OK") == 11


@on_every_tier
def test_body_counts_as_no_head(tier: str) -> None:
    with running(tier) as started:
        post = b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 60000\r\n\r\n" + b"x\n" * 30_000
        received = started.exchange(post + post + request(close=True))
        assert [int(part[:3]) for part in received.split(b"HTTP/1.1 ")[1:]] == [405, 405, 200]


@on_every_tier
def test_requests_behind_an_unread_answer_are_taken_up_to_a_bound(tier: str) -> None:
    with running(tier, write_timeout=30.0) as started, unread(started) as client:
        client.settimeout(0.5)
        rest, before = b"", -1
        while not PAUSE_AT // 2 < cost(started) == before:  # it may take nothing for a while, beside a load
            before = cost(started)
            with contextlib.suppress(TimeoutError):
                for _ in range(200):
                    rest = rest or head(60_000)
                    rest = rest[client.send(rest) :]
        # One more read, and one request more, than what is paused at.
        assert PAUSE_AT // 2 < cost(started) < PAUSE_AT + 200_000


@on_every_tier
def test_every_request_behind_an_answer_that_is_read_late_is_answered(tier: str) -> None:
    with running(tier, write_timeout=30.0) as started, started.connect() as client:
        client.sendall(request("/hang"))
        for _ in range(30):
            client.sendall(head(6_000))
        time.sleep(0.2)
        started.service.released.set()
        for _ in range(31):
            assert b" 200 OK" in read_answer(client)
        client.sendall(request(close=True))
        assert b" 200 OK" in read_all(client)
        eventually(lambda: cost(started) == 0)


@on_every_tier
def test_those_that_hold_most_are_cut_and_nobody_else(tier: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(held, "HELD_MAX", 2_000_000)
    monkeypatch.setattr(connections, "HELD_MAX", 2_000_000)
    with running(tier, header_timeout=20.0) as started, contextlib.ExitStack() as stack:
        good = stack.enter_context(started.connect())
        good.sendall(head(3_000)[:-2])
        for _ in range(40):
            client = stack.enter_context(started.connect())
            with contextlib.suppress(OSError):
                client.sendall(head(60_000)[:-2])
        eventually(lambda: started.counts.held_cuts > 0)
        eventually(lambda: cost(started) <= 2_000_000)
        good.sendall(b"\r\n")
        assert b" 200 OK" in read_answer(good)


@on_every_tier
def test_requests_behind_an_answer_that_is_hardly_read_have_a_deadline(tier: str) -> None:
    with running(tier, write_timeout=0.5) as started, unread(started) as client:
        eventually(lambda: started.counts.connections == 1)
        with contextlib.suppress(ConnectionResetError):
            for _ in range(100):
                client.recv(2_000)
                time.sleep(0.05)
                if started.counts.write_stalls:
                    break
        assert started.counts.write_stalls == 1
        eventually(lambda: started.counts.connections == 0)
        assert cost(started) == 0


@on_every_tier
def test_nothing_is_held_once_everybody_has_left(tier: str) -> None:
    with running(tier) as started:
        for sent in (
            b"GET",
            head(50_000)[:-2],
            request() * 40,
            request("/hang") + head(9_000),
            b"\0" * 70_000,
        ):
            with started.connect() as client, contextlib.suppress(OSError):
                client.sendall(sent)
                time.sleep(0.02)
        started.service.released.set()
        eventually(lambda: started.counts.connections == 0)
        assert cost(started) == 0


@on_every_tier
def test_requests_that_nobody_has_taken_up_yet_are_no_stall(tier: str) -> None:
    """A look at a connection may come between its first bytes and the task that takes them up."""
    with running(tier, write_timeout=0.1) as started:

        async def look_before_anything_is_taken() -> int:
            shared: Any = started.server._connections
            connection = shared.made()
            transport = Transport(connection)
            connection.connection_made(transport)
            connection.data_received(request() * 2)
            shared.sweep(time.monotonic())
            await asyncio.sleep(0.05)
            return transport.written.count(b" 200 OK")

        assert started.call(look_before_anything_is_taken()) == 2
        assert started.counts.write_stalls == 0
