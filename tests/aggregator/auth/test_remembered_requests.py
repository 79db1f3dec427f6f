"""Requests that are answered from memory while there is leave: what ends it ends it with the next request.

Every client here keeps its connection and repeats its bytes, which is what the memo of requests is for.
"""

from __future__ import annotations

import datetime as dt
import gc
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trustme
from prometheus_client import CollectorRegistry

from deadline import DEADLINE
from fakes.reviewer import ACCESS, TOKEN, reviewing
from running.serving import FakeService, Running, eventually, read_answer, request, running
from specmux_aggregator.auth import client_certificates, token_file
from specmux_aggregator.auth.authenticator import ALWAYS, ONCE
from specmux_aggregator.auth.client_certificates import PeerCertificate
from specmux_aggregator.auth.guard import gate_of
from specmux_aggregator.auth.kubernetes import ReviewedOfNoProxy, ReviewedPermission, ReviewEntry
from specmux_aggregator.auth.users import User
from specmux_aggregator.config.settings import AuthSettings, Settings
from specmux_aggregator.metrics.instruments import Metrics
from specmux_aggregator.model.backend import Backend

ALICE = "Authorization: Bearer alice-token"
NAME = "127.0.0.1"


@contextmanager
def guarded(
    auth: AuthSettings, *, cluster: Backend | None = None, service: Any = None, **listen: Any
) -> Iterator[Running]:
    gate = gate_of(Settings(auth=auth), Metrics(CollectorRegistry()), cluster=cluster)
    assert gate is not None
    files = auth.ca_file
    with running("memoised", service, gate=gate, client_ca_file=files, **listen) as server:
        eventually(lambda: gate.complaint() is None)
        yield server


def status(client: socket.socket, *fields: str) -> int:
    client.sendall(request("/a", *fields))
    return int(read_answer(client).split(b" ", 2)[1])


def until_remembered(server: Running, client: socket.socket, *fields: str) -> None:
    """Ask until the answer comes from memory."""
    before = server.counts.memo_hits
    for _ in range(5):
        assert status(client, *fields) == 200
    eventually(lambda: server.counts.memo_hits >= before + 2)


def test_rotated_token_file_ends_what_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_file, "INTERVAL", 0.05)
    path = tmp_path / "tokens"
    path.write_text("alice-token,alice\nkept,carol\n")
    with (
        guarded(AuthSettings(mode="token-file", token_file=path)) as server,
        server.connect() as alice,
        server.connect() as bob,
    ):
        until_remembered(server, alice, ALICE)
        path.write_text("bob-token,bob\nkept,carol\n")
        eventually(lambda: status(bob, "Authorization: Bearer bob-token") == 200)
        assert status(alice, ALICE) == 401
        assert [status(alice, ALICE, f"Audit-Id: {number}") for number in range(5)] == [401] * 5
        until_remembered(server, alice, "Authorization: Bearer kept")
        assert [status(alice, ALICE) for _ in range(5)] == [401] * 5


def test_requests_that_differ_in_their_token_alone_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text("alice-token,alice\n")
    with guarded(AuthSettings(mode="token-file", token_file=path)) as server, server.connect() as client:
        until_remembered(server, client, ALICE)
        for other in (ALICE + "x", ALICE[:-1], "X" + ALICE, ALICE.replace("alice", "Alice"), "Accept: a"):
            assert status(client, other) == 401
        assert status(client, ALICE) == 200


def test_unique_headers_beside_a_token_cost_no_parser(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text("alice-token,alice\n")
    with guarded(AuthSettings(mode="token-file", token_file=path)) as server, server.connect() as client:
        assert [status(client, ALICE, f"Audit-Id: {number}") for number in range(20)] == [200] * 20
        eventually(lambda: server.counts.memo_hits >= 17)
        for other in (ALICE + "x", "X" + ALICE, "Accept: a"):
            assert status(client, other, "Audit-Id: 99") == 401


def test_memory_holds_no_token(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text("alice-token,alice\n")
    with guarded(AuthSettings(mode="token-file", token_file=path)) as server, server.connect() as client:
        until_remembered(server, client, ALICE)
        gc.collect()
        memos = server.server._dispatch.answers
        kept = (memos._exact, memos._deciding, memos._similar)
        assert [len(memo) for memo in kept] == [1, 1, 1]
        assert "alice-token" not in repr([(memo.young, memo._old) for memo in kept])


def test_changed_document_ends_what_is_remembered(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text("alice-token,alice\n")
    service = FakeService()
    with (
        guarded(AuthSettings(mode="token-file", token_file=path), service=service) as server,
        server.connect() as client,
    ):
        for generation in (1, 2, 3):
            service.generation = generation
            for _ in range(4):
                client.sendall(request("/a", ALICE))
                assert read_answer(client).endswith(b" %d\n" % generation)


def test_review_that_is_over_ends_what_is_remembered() -> None:
    with reviewing() as reviewer:
        reviewer.fake.know("alice-token", "alice")
        auth = AuthSettings(mode="kubernetes", cache_seconds=DEADLINE)
        with guarded(auth, cluster=reviewer.fake.backend) as server, server.connect() as client:
            until_remembered(server, client, ALICE)
            reviewer.fake.users.clear()  # revoked
            assert [status(client, ALICE) for _ in range(20)] == [200] * 20
            assert reviewer.fake.count(TOKEN, token="alice-token") == 1
            end_reviews(server)
            assert [status(client, ALICE) for _ in range(5)] == [401] * 5


def test_review_that_is_over_is_asked_for_again_and_remembered_again() -> None:
    with reviewing() as reviewer:
        reviewer.fake.know("alice-token", "alice")
        auth = AuthSettings(mode="kubernetes", cache_seconds=DEADLINE)
        with guarded(auth, cluster=reviewer.fake.backend) as server, server.connect() as client:
            for reviews in (1, 2, 3):
                until_remembered(server, client, ALICE)
                assert reviewer.fake.count(TOKEN, token="alice-token") == reviews
                assert reviewer.fake.count(ACCESS, user="alice") == reviews
                end_reviews(server)


def end_reviews(server: Running) -> None:
    """Let the time be over for which they are kept."""
    guard: Any = server.server._dispatch._guard
    for kept in (guard._authority._users, guard._authority._accesses):
        for entry in kept._entries.values():
            entry.until = time.monotonic()


def test_leave_by_reviews_ends_with_the_first_of_them() -> None:
    user, access = ReviewEntry(User("alice"), 10.0), ReviewEntry(True, 8.0)
    leave = ReviewedPermission(user, access)
    anybody: Any = SimpleNamespace(certificate=False, transport=None)
    assert [leave.lasts(anybody, now) for now in (7.9, 8.0)] == [True, False]
    access.until = 20.0
    assert [leave.lasts(anybody, now) for now in (9.9, 10.0)] == [True, False]


def test_front_proxy_gets_nothing_that_is_remembered_of_a_token() -> None:
    leave = ReviewedOfNoProxy(ReviewEntry(User("alice"), 10.0), ReviewEntry(True, 10.0))
    certificate = PeerCertificate("proxy", frozenset({"proxy"}), time.time() + 100)
    proxy: Any = SimpleNamespace(certificate=certificate, transport=object())
    assert not leave.lasts(proxy, 1.0)
    somebody: Any = SimpleNamespace(certificate=False, transport=object())
    assert leave.lasts(somebody, 1.0)
    assert (ALWAYS.lasts(proxy, 1.0), ONCE.lasts(proxy, 1.0)) == (True, False)


class Clients:
    """A listener with TLS that takes the certificates of one CA."""

    def __init__(self, folder: Path) -> None:
        self.listener, self.clients = trustme.CA(), trustme.CA()
        self.file, self.ca_file = folder / "tls.pem", folder / "clients.crt"
        self.listener.issue_cert(NAME).private_key_and_cert_chain_pem.write_to_path(self.file)
        self.clients.cert_pem.write_to_path(self.ca_file)
        self.auth = AuthSettings(mode="mtls", client_ca_file=self.ca_file)

    def guarded(self) -> Any:
        files = {"tls_cert_file": self.file, "tls_key_file": self.file}
        return guarded(self.auth, **files)

    def connect(self, server: Running, leaf: trustme.LeafCert | None) -> Any:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.listener.configure_trust(context)
        if leaf is not None:
            leaf.configure_cert(context)
        return context.wrap_socket(server.connect(), server_hostname=NAME)


def test_who_shows_no_certificate_gets_nothing_that_is_remembered_of_others(tmp_path: Path) -> None:
    world = Clients(tmp_path)
    with (
        world.guarded() as server,
        world.connect(server, world.clients.issue_cert("alice@example.org")) as alice,
        world.connect(server, world.clients.issue_cert("bob@example.org")) as bob,
        world.connect(server, None) as nobody,
    ):
        until_remembered(server, alice)
        hits = server.counts.memo_hits
        assert [status(bob) for _ in range(3)] == [200] * 3
        eventually(lambda: server.counts.memo_hits == hits + 3)
        assert [status(nobody) for _ in range(3)] == [403] * 3
        assert server.counts.memo_hits == hits + 3


def test_certificate_that_expires_ends_what_is_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = Clients(tmp_path)
    end = dt.datetime.now(dt.UTC) + dt.timedelta(hours=1)
    leaf = world.clients.issue_cert("alice@example.org", not_after=end)
    with world.guarded() as server, world.connect(server, leaf) as alice:
        until_remembered(server, alice)
        after = SimpleNamespace(time=lambda: end.timestamp() + 0.1)
        monkeypatch.setattr(client_certificates, "time", after)
        assert [status(alice) for _ in range(3)] == [403] * 3
