"""Large answers that clients do not read: what they keep alive is bounded, and those who read get theirs."""

from __future__ import annotations

import contextlib
import socket
from dataclasses import dataclass, field

import pytest

from running.serving import TIERS, FakeService, Running, eventually, read_answer, request, running
from specmux_aggregator.http.messages import Request
from specmux_aggregator.http.prepared_answer import PreparedAnswer, prepare
from specmux_aggregator.server.output_limits import BUFFERED, GRACE, SLOW, SMALL, UnreadBodies

MEBIBYTE = 1024 * 1024


@dataclass(eq=False)
class Client:
    sent: int = 0
    has_given_way: bool = False

    def give_way(self) -> None:
        self.has_given_way = True


def test_body_counts_once_for_all_who_read_it_and_until_the_last_has_it() -> None:
    unread, body, clients = UnreadBodies(100), b"x" * 60, [Client(), Client()]
    assert all(unread.admit(body, client, 0.0) for client in clients)
    assert unread.bytes == 60
    unread.leave(body, clients[0])
    unread.leave(body, clients[0])
    assert unread.bytes == 60
    unread.leave(body, clients[1])
    assert unread.bytes == 0


def test_more_than_the_budget_is_refused_unless_it_is_alone() -> None:
    unread, client = UnreadBodies(100), Client()
    large, small = b"x" * 300, b"y" * 10
    assert unread.admit(large, client, 0.0)
    assert not unread.admit(small, Client(), 0.0)
    unread.leave(large, client)
    assert unread.admit(small, client, 0.0)
    assert not unread.admit(large, client, 0.0)


def test_the_slowest_give_way_to_a_new_one_and_no_more_than_must() -> None:
    unread, after = UnreadBodies(100), GRACE + 1.0
    fast, slow, slower = Client(BUFFERED + int(SLOW * after * 2)), Client(1_000), Client(10)
    bodies = [letter * 33 for letter in (b"a", b"b", b"c")]
    for client, body in zip((fast, slow, slower), bodies, strict=True):
        assert unread.admit(body, client, 0.0)
    assert not unread.admit(b"d" * 33, Client(), GRACE - 1.0)
    assert unread.admit(b"d" * 33, Client(), after)
    assert (fast.has_given_way, slow.has_given_way, slower.has_given_way) == (False, False, True)
    unread.leave(bodies[2], slower)
    assert unread.bytes == 99
    # Room for this one cannot be made, so nobody has to go for it.
    assert not unread.admit(b"e" * 90, Client(), after)
    assert not slow.has_given_way


def test_body_that_one_client_reads_well_keeps_the_others_who_read_it() -> None:
    unread, after, body = UnreadBodies(100), GRACE + 1.0, b"x" * 90
    slow, fast = Client(0), Client(BUFFERED + int(SLOW * after * 2))
    assert unread.admit(body, slow, 0.0)
    assert unread.admit(body, fast, 0.0)
    assert not unread.admit(b"y" * 90, Client(), after)
    assert not slow.has_given_way


@dataclass
class LargeService(FakeService):
    """A body of 8 MiB for each path below ``/large``, the same for all who ask."""

    bodies: dict[str, bytes] = field(default_factory=dict)

    def answer(self, request: Request) -> PreparedAnswer:
        if not request.path.startswith("/large"):
            return super().answer(request)
        made = request.path.encode().ljust(8 * MEBIBYTE, b".")
        return prepare(200, [("ETag", '"large"')], self.bodies.setdefault(request.path, made))


def unread_bytes(started: Running) -> int:
    shared = started.server._connections
    assert shared is not None
    return shared.unread.bytes


def asking(started: Running, path: str) -> socket.socket:
    client = started.connect(receive_buffer=4096)
    client.sendall(request(path))
    return client


@pytest.mark.parametrize("tier", TIERS)
def test_clients_that_do_not_read_keep_no_more_than_the_budget(tier: str) -> None:
    service = LargeService()
    with (
        running(tier, service, unread_max=20 * MEBIBYTE, write_timeout=60.0) as started,
        contextlib.ExitStack() as stack,
    ):
        for path in ("/large/a", "/large/b"):
            for _ in range(4):
                stack.enter_context(asking(started, path))
        eventually(lambda: unread_bytes(started) == 16 * MEBIBYTE)
        with started.connect() as client:
            client.sendall(request("/large/c"))
            refused = read_answer(client)
            assert refused.startswith(b"HTTP/1.1 429 Too Many Requests\r\n")
            assert b"Retry-After: 1\r\n" in refused
            # What is on its way to others anyhow, and what is small, costs nothing.
            for path, size in (("/large/a", 8 * MEBIBYTE), ("/a", 0), ("/big", SMALL)):
                client.sendall(request(path))
                answer = read_answer(client)
                assert answer.startswith(b"HTTP/1.1 200 OK\r\n")
                assert len(answer) > size
        assert started.counts.requests_refused == 1
        stack.close()
        eventually(lambda: unread_bytes(started) == 0)


def test_clients_that_read_nothing_give_way_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("specmux_aggregator.server.output_limits.GRACE", 0.2)
    with (
        running("memoised", LargeService(), unread_max=20 * MEBIBYTE, write_timeout=60.0) as started,
        asking(started, "/large/a"),
        asking(started, "/large/b"),
    ):
        eventually(lambda: unread_bytes(started) == 16 * MEBIBYTE)
        eventually(lambda: started.exchange(request("/large/c", close=True)).startswith(b"HTTP/1.1 200 OK"))
        assert started.counts.write_stalls == 1
        eventually(lambda: unread_bytes(started) == 8 * MEBIBYTE)
