"""Mode kubernetes: what is remembered of reviews and within which bounds, and what an outage costs."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import pytest
from multidict import CIMultiDict, CIMultiDictProxy
from prometheus_client import CollectorRegistry

from aggregator.auth.guarded_server import ALICE, BOB, POLLING, guarded, on_both_tiers, refused
from deadline import DEADLINE
from fakes.reviewer import ACCESS, TOKEN, Reviewing
from running.serving import eventually, read_all, request, running
from specmux_aggregator.auth import reviews
from specmux_aggregator.auth.authenticator import AuthRequest
from specmux_aggregator.auth.guard import gate_of
from specmux_aggregator.auth.kubernetes import STRANGERS, TOKENS, KubernetesAuthenticator
from specmux_aggregator.auth.reviews import AccessVerdict, TokenVerdict
from specmux_aggregator.auth.users import User, authenticated_user
from specmux_aggregator.config.settings import AuthSettings, Settings
from specmux_aggregator.metrics.instruments import Metrics


@on_both_tiers
@pytest.mark.parametrize("kind", [TOKEN, ACCESS])
@pytest.mark.parametrize("fault", ["500", "403", "404", "200", "no review", "stopped", "hanging"])
def test_without_reviews_nobody_new_is_let_in(
    reviewer: Reviewing, tier: str, kind: str, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    """503 and not 401, and said so, until the cluster answers again. Who is known stays so for a while."""
    caplog.set_level(logging.INFO)
    quick = replace(POLLING, connect_timeout=1.0, idle_timeout=1.0, total_timeout=1.0)
    polling = quick if fault == "hanging" else POLLING
    with guarded(reviewer.fake, tier, polling=polling, cache_seconds=DEADLINE, review_grace=0) as started:
        assert started.ask(BOB).startswith(b"HTTP/1.1 200 ")
        if fault == "stopped":
            reviewer.stop()
        elif fault == "hanging":
            reviewer.fake.delay[kind] = 5.0
        else:
            reviewer.fake.broken[kind] = {"kind": "Pod"} if fault == "no review" else int(fault)
        for _ in range(2):
            answer = started.ask(ALICE)
            refused(answer, 503, "ServiceUnavailable")
            assert b"\r\nRetry-After: 1\r\n" in answer
        assert started.ask(BOB).startswith(b"HTTP/1.1 200 ")
        assert started.refusals("unavailable") == 2
        complaint = started.gate.complaint()
        assert complaint is not None
        assert "review fails" in complaint
        eventually(lambda: started.metrics.registry.get_sample_value("specmux_auth_up") == 0)
        reviewer.fake.broken.clear()
        reviewer.fake.delay.clear()
        if fault == "stopped":
            reviewer.start()
        eventually(lambda: started.gate.complaint() is None)
        eventually(lambda: started.metrics.registry.get_sample_value("specmux_auth_up") == 1)
        assert started.ask(ALICE).startswith(b"HTTP/1.1 200 ")
    lines = [record.getMessage() for record in caplog.records if "authentication" in record.getMessage()]
    errors = [line for line in lines if "fail, nobody new" in line]
    assert 1 <= len(errors) <= (2 if fault == "stopped" else 1), lines
    assert len([line for line in lines if "answered again" in line]) == len(errors)
    for secret in ("s3cret", "alice-token", "bob-token"):
        assert secret not in caplog.text


def test_not_ready_before_the_cluster_was_tried(reviewer: Reviewing) -> None:
    reviewer.fake.broken = {TOKEN: 403}
    with guarded(reviewer.fake, is_proven=False) as started:
        eventually(lambda: (started.gate.complaint() or "").endswith("(credentials)"))
        reviewer.fake.broken.clear()
        eventually(lambda: started.gate.complaint() is None)


@pytest.mark.parametrize("status", [400, 413, 422])
def test_question_that_the_cluster_finds_odd_is_refused_and_says_nothing_about_the_cluster(
    reviewer: Reviewing, status: int
) -> None:
    with guarded(reviewer.fake) as started:
        reviewer.fake.broken[TOKEN] = status
        refused(started.ask(ALICE), 503, "ServiceUnavailable")
        assert started.gate.complaint() is None


def test_errors_inside_a_review_refuse_and_are_not_remembered(reviewer: Reviewing) -> None:
    with guarded(reviewer.fake) as started:
        reviewer.fake.broken[TOKEN] = {"status": {"authenticated": False, "error": "webhook down"}}
        refused(started.ask(ALICE), 401, "Unauthorized")
        reviewer.fake.broken.clear()
        reviewer.fake.broken[ACCESS] = {"status": {"allowed": False, "evaluationError": "no role"}}
        refused(started.ask(ALICE), 403, "Forbidden")
        reviewer.fake.broken.clear()
        assert started.ask(ALICE).startswith(b"HTTP/1.1 200 ")


def test_callers_at_once_share_one_review(reviewer: Reviewing) -> None:
    reviewer.fake.delay = {TOKEN: 0.3, ACCESS: 0.3}
    with guarded(reviewer.fake) as started, ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda _: started.ask(ALICE), range(20)))
        assert all(answer.startswith(b"HTTP/1.1 200 ") for answer in answers)
        assert reviewer.fake.count(TOKEN, token="alice-token") == 1
        assert reviewer.fake.count(ACCESS, user="alice") == 1


def test_caller_that_leaves_costs_the_others_nothing(reviewer: Reviewing) -> None:
    with guarded(reviewer.fake) as started, ThreadPoolExecutor(1) as pool:
        reviewer.fake.delay = {TOKEN: 0.4}
        with started.server.connect() as client:
            client.sendall(request("/a", ALICE))
            eventually(lambda: reviewer.fake.count(TOKEN, token="alice-token") == 1)
            other = pool.submit(started.ask, ALICE)
            time.sleep(0.1)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        assert other.result(DEADLINE).startswith(b"HTTP/1.1 200 ")
        assert reviewer.fake.count(TOKEN, token="alice-token") == 1


def test_idle_connection_that_the_cluster_closed_is_no_failure(reviewer: Reviewing) -> None:
    with guarded(reviewer.fake, cache_seconds=0.0) as started:
        for _ in range(3):
            assert started.ask(ALICE).startswith(b"HTTP/1.1 200 ")
            reviewer.stop()
            reviewer.start()
        assert started.ask(ALICE).startswith(b"HTTP/1.1 200 ")


@pytest.mark.long
def test_flood_of_tokens_displaces_nobody(reviewer: Reviewing) -> None:
    with guarded(reviewer.fake, cache_seconds=300) as started, started.server.connect() as client:
        assert started.ask(ALICE).startswith(b"HTTP/1.1 200 ")
        for first in range(0, 2 * STRANGERS, 64):
            client.sendall(b"".join(request("/a", stranger(first + n)) for n in range(64)))
            answers = b""
            while answers.count(b"HTTP/1.1 401 ") < 64 or not answers.endswith(b"}"):
                answers += client.recv(1 << 16)
        assert len(started.cluster._strangers) == STRANGERS
        assert started.ask(ALICE).startswith(b"HTTP/1.1 200 ")
        assert reviewer.fake.count(TOKEN, token="alice-token") == 1


def stranger(number: int) -> str:
    return f"Authorization: Bearer stranger{number}"


class Deciding:
    """Reviews that cost nothing: tokens begin with their user's name, those of strangers are nobody's."""

    async def token(self, token: str, *, address: bytes) -> TokenVerdict:
        return TokenVerdict(
            None if token.startswith("stranger") else authenticated_user(token[:12], "", (), {})
        )

    async def access(self, user: User, path: str, *, verb: str, address: bytes) -> AccessVerdict:
        return AccessVerdict(True)


@pytest.mark.long
@pytest.mark.parametrize("prefix", ["stranger", "user"])
def test_ten_thousand_tokens_are_kept_in_bounded_memory_and_as_digests_only(prefix: str) -> None:
    cluster = KubernetesAuthenticator(
        Deciding(),  # type: ignore[arg-type]
        cache_seconds=300,
        review_grace=300,
        front_proxies=None,
        is_authorised_elsewhere=lambda message: False,
    )

    def asked(number: int) -> AuthRequest:
        token = f"{prefix}{number}-" + "x" * 1000
        headers = CIMultiDictProxy(CIMultiDict({"Authorization": f"Bearer {token}"}))
        client = SimpleNamespace(peername=("192.0.2.1", 1))
        message = SimpleNamespace(headers=headers, method="GET")
        return AuthRequest(message, client, f"/{number}")  # type: ignore[arg-type]

    async def scenario() -> int:
        for number in range(10_000):
            await cluster.refuse(asked(number))
        kept = repr([vars(cluster), *(list(getattr(cluster, name)._entries) for name in MEMORIES)])
        assert "xxxx" not in kept
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        grown = asyncio.run(scenario())
    finally:
        tracemalloc.stop()
    assert [len(getattr(cluster, name)) for name in MEMORIES] == (
        [0, STRANGERS, 0] if prefix == "stranger" else [TOKENS, 0, 10_000]
    )
    assert grown < (1 if prefix == "stranger" else 8) * 1024 * 1024


MEMORIES = ("_users", "_strangers", "_accesses")


def test_users_and_paths_are_bounded(reviewer: Reviewing) -> None:
    with guarded(reviewer.fake) as started:
        assert started.cluster._users._size == TOKENS
        long = "/" + "a" * 4000
        assert started.ask(ALICE, target=long).startswith(b"HTTP/1.1 200 ")
        assert len(started.cluster._accesses) == 0
        assert started.ask(ALICE).startswith(b"HTTP/1.1 200 ")
        assert len(started.cluster._accesses) == 1


def test_reviews_that_wait_too_long_for_their_turn_are_refused_and_say_nothing_about_the_cluster(
    reviewer: Reviewing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reviews, "WAIT", 0.2)
    with guarded(reviewer.fake) as started, ThreadPoolExecutor(reviews.OF_ONE_ADDRESS + 4) as pool:
        assert started.ask(BOB).startswith(b"HTTP/1.1 200 ")
        reviewer.fake.delay = {TOKEN: 1.0}
        answers = list(
            pool.map(
                lambda n: started.ask(f"Authorization: Bearer t{n}")[:12], range(reviews.OF_ONE_ADDRESS + 4)
            )
        )
        assert sorted(answers) == [b"HTTP/1.1 401"] * reviews.OF_ONE_ADDRESS + [b"HTTP/1.1 503"] * 4
        assert started.gate.complaint() is None
        assert started.ask(BOB).startswith(b"HTTP/1.1 200 ")


def test_request_that_a_backend_decides_about_needs_a_known_caller_only(reviewer: Reviewing) -> None:
    reviewer.fake.allows = lambda user, path: False
    settings = Settings(auth=AuthSettings(mode="kubernetes"), polling=POLLING)
    gate = gate_of(
        settings,
        Metrics(CollectorRegistry()),
        cluster=reviewer.fake.backend,
        is_authorised_elsewhere=lambda message: message.path.startswith("/a"),
    )
    assert gate is not None
    with running("parsed", gate=gate) as server:
        for field, target, status in (
            (ALICE, "/a", 200), (ALICE, "/a", 200), (ALICE, "/b", 403), ("X: y", "/a", 401),
            ("Authorization: Bearer wrong", "/a", 401),
        ):  # fmt: skip
            answer = server.exchange(request(target, field, close=True))
            assert answer.startswith(f"HTTP/1.1 {status} ".encode())


def test_stop_waits_for_no_review(reviewer: Reviewing) -> None:
    reviewer.fake.delay = {TOKEN: 600.0}
    patient = replace(POLLING, idle_timeout=600.0, total_timeout=600.0)
    with (
        guarded(reviewer.fake, polling=patient, is_proven=False) as started,
        started.server.connect() as client,
    ):
        client.sendall(request("/a", ALICE))
        eventually(lambda: reviewer.fake.count(TOKEN, token="alice-token") == 1)
        started.server.call(started.server.server.stop())
        started.server.call(started.gate.close())
        read_all(client)


@on_both_tiers
@pytest.mark.parametrize("fault", ["500", "403", "stopped", "hanging"])
def test_outage_of_the_cluster_does_not_stop_those_who_were_let_in(
    reviewer: Reviewing, tier: str, fault: str
) -> None:
    quick = replace(POLLING, connect_timeout=2.0, idle_timeout=2.0, total_timeout=2.0)
    polling = quick if fault == "hanging" else POLLING
    with guarded(reviewer.fake, tier, polling=polling, cache_seconds=0.2, review_grace=DEADLINE) as started:
        assert started.ask(ALICE).startswith(b"HTTP/1.1 200 ")
        for kind in (TOKEN, ACCESS):
            if fault == "stopped":
                reviewer.stop()
                break
            if fault == "hanging":
                reviewer.fake.delay[kind] = 5.0
            else:
                reviewer.fake.broken[kind] = int(fault)
        time.sleep(0.3)
        assert started.ask(ALICE).startswith(b"HTTP/1.1 200 ")
        began = time.monotonic()
        for _ in range(5):
            assert started.ask(ALICE).startswith(b"HTTP/1.1 200 ")
        waits = (time.monotonic() - began) / quick.total_timeout
        assert waits < 5, "nobody waits for a cluster that is known to be away"
        assert started.gate.complaint() is None, "the replica stays in service"
        assert started.metrics.registry.get_sample_value("specmux_auth_up") == 0
        refused(started.ask(BOB), 503, "ServiceUnavailable")
        refused(started.ask(ALICE, target="/never-asked-for"), 503, "ServiceUnavailable")
        reviewer.fake.broken.clear()
        reviewer.fake.delay.clear()
        if fault == "stopped":
            reviewer.start()
        eventually(lambda: started.metrics.registry.get_sample_value("specmux_auth_up") == 1)
        # What the cluster says counts at once again.
        del reviewer.fake.users["alice-token"]
        refused(started.ask(ALICE), 401, "Unauthorized")
        reviewer.fake.broken[TOKEN] = 500
        eventually(lambda: started.ask("Authorization: Bearer x").startswith(b"HTTP/1.1 503 "))
        assert not started.ask(ALICE).startswith(b"HTTP/1.1 200 "), "who was refused since is not let in"


@pytest.mark.parametrize("grace", [0.0, 0.3])
def test_grace_ends(reviewer: Reviewing, grace: float) -> None:
    with guarded(reviewer.fake, cache_seconds=0.2, review_grace=grace) as started:
        assert started.ask(ALICE).startswith(b"HTTP/1.1 200 ")
        reviewer.fake.broken.update({TOKEN: 500, ACCESS: 500})
        time.sleep(0.25 + grace)
        refused(started.ask(ALICE), 503, "ServiceUnavailable")
        eventually(lambda: started.gate.complaint() is not None)


def test_denial_is_not_forgotten_in_an_outage(reviewer: Reviewing) -> None:
    with guarded(reviewer.fake, cache_seconds=0.2, review_grace=60) as started:
        assert started.ask(ALICE).startswith(b"HTTP/1.1 200 ")
        time.sleep(0.3)
        reviewer.fake.allows = lambda user, path: user != "alice"
        refused(started.ask(ALICE), 403, "Forbidden")
        reviewer.fake.broken[ACCESS] = 500
        time.sleep(0.3)
        refused(started.ask(ALICE), 503, "ServiceUnavailable")
