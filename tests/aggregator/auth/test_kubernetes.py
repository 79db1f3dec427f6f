"""Mode kubernetes on a listening server, on both tiers: who is let in, who is not, and what is remembered."""

from __future__ import annotations

import asyncio
import logging
import socket
import time
import tracemalloc
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import orjson
import pytest
from multidict import CIMultiDict, CIMultiDictProxy
from prometheus_client import CollectorRegistry

from fakes.reviewer import ACCESS, TOKEN, FakeReviewer, Reviewing, reviewing
from running.serving import Running, eventually, read_all, read_answer, request, running, timeless
from specmux_aggregator.auth import reviews
from specmux_aggregator.auth.authenticator import Asked
from specmux_aggregator.auth.guard import RequestGuard
from specmux_aggregator.auth.kubernetes import STRANGERS, TOKENS, KubernetesAuthenticator
from specmux_aggregator.auth.modes import gate_of
from specmux_aggregator.auth.review_objects import AccessVerdict, TokenVerdict
from specmux_aggregator.auth.users import User, proven
from specmux_aggregator.config.settings import Auth, Polling, Settings
from specmux_aggregator.metrics.instruments import Metrics

on_both_tiers = pytest.mark.parametrize("tier", ["parsed", "memoised"])

ALICE = "Authorization: Bearer alice-token"
BOB = "Authorization: Bearer bob-token"
POLLING = Polling(connect_timeout=2.0, idle_timeout=2.0, total_timeout=2.0)


@pytest.fixture
def reviewer() -> Iterator[Reviewing]:
    with reviewing() as started:
        started.fake.know("alice-token", "alice")
        started.fake.know("bob-token", "bob", groups=["ops", "system:authenticated"])
        yield started


class Guarded:
    """A guarded server, and what is behind its gate."""

    def __init__(self, server: Running, gate: RequestGuard, metrics: Metrics) -> None:
        self.server = server
        self.gate = gate
        self.metrics = metrics

    @property
    def cluster(self) -> KubernetesAuthenticator:
        assert isinstance(self.gate._authority, KubernetesAuthenticator)
        return self.gate._authority

    def ask(self, *fields: str, target: str = "/a", **more: Any) -> bytes:
        return self.server.exchange(request(target, *fields, close=True, **more))

    def refusals(self, reason: str) -> float:
        value = self.metrics.registry.get_sample_value("specmux_auth_refusals_total", {"reason": reason})
        assert value is not None
        return value


@contextmanager
def guarded(
    fake: FakeReviewer,
    tier: str = "parsed",
    *,
    polling: Polling = POLLING,
    is_proven: bool = True,
    service: Any = None,
    **auth: Any,
) -> Iterator[Guarded]:
    metrics = Metrics(CollectorRegistry())
    settings = Settings(auth=Auth(mode="kubernetes", **auth), polling=polling)
    gate = gate_of(settings, metrics, cluster=fake.backend)
    assert gate is not None
    with running(tier, service, gate=gate) as server:
        if is_proven:
            eventually(lambda: gate.complaint() is None)
        yield Guarded(server, gate, metrics)


def refused(answer: bytes, status: int, reason: str) -> dict[str, Any]:
    """The Status of a refusal, after a look at its form."""
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith(f"HTTP/1.1 {status} ".encode()), answer
    assert b"\r\nCache-Control: no-store" in head
    found = orjson.loads(body)
    assert (found["kind"], found["code"], found["reason"]) == ("Status", status, reason)
    return dict(found)


@on_both_tiers
def test_known_user_is_let_in_and_reviewed_once(reviewer: Reviewing, tier: str) -> None:
    with guarded(reviewer.fake, tier) as started, started.server.connect() as client:
        for _ in range(20):
            client.sendall(request("/a?x=1", ALICE))
            assert read_answer(client).endswith(b"/a?x=1 None None 1\n")
        assert reviewer.fake.count(TOKEN, token="alice-token") == 1
        assert reviewer.fake.log[ACCESS][-1] == {
            "user": "alice",
            "groups": ["system:authenticated"],
            "nonResourceAttributes": {"path": "/a", "verb": "get"},
        }
        assert reviewer.fake.count(ACCESS, user="alice") == 1
        eventually(lambda: started.server.counts.memo_hits == (17 if tier == "memoised" else 0))
        if tier != "parsed":
            eventually(lambda: started.server.counts.at_once == 19)


@on_both_tiers
@pytest.mark.parametrize(
    "fields",
    [(), ("Authorization: Basic YTpi",), ("Authorization: Bearer",), ("Cookie: token=alice-token",),
     ("Proxy-Authorization: Bearer alice-token",), ("X-Remote-User: alice", "X-Remote-Group: system:masters"),
     ("Impersonate-User: alice",), ("Authorization: Bearer alice-token bob-token",)],
)  # fmt: skip
def test_caller_without_token_is_asked_for_one(reviewer: Reviewing, tier: str, fields: tuple[str]) -> None:
    with guarded(reviewer.fake, tier) as started:
        answer = started.ask(*fields)
        refused(answer, 401, "Unauthorized")
        assert b'\r\nWWW-Authenticate: Bearer realm="specmux"\r\n' in answer
        assert started.refusals("no_credentials") == 1
        assert reviewer.fake.count(ACCESS, user="alice") == 0


@on_both_tiers
def test_token_in_the_query_is_not_looked_at(reviewer: Reviewing, tier: str) -> None:
    with guarded(reviewer.fake, tier) as started:
        refused(started.ask(target="/a?access_token=alice-token&token=alice-token"), 401, "Unauthorized")
        assert reviewer.fake.count(TOKEN, token="alice-token") == 0


@on_both_tiers
@pytest.mark.parametrize(
    "target", ["/a", "/slow", "/openapi/v3", "/metrics", "/status", "http://x/livez/../a"]
)
def test_stranger_is_refused_everywhere(reviewer: Reviewing, tier: str, target: str) -> None:
    with guarded(reviewer.fake, tier) as started:
        answer = started.ask("Authorization: Bearer wrong", target=target)
        refused(answer, 401, "Unauthorized")
        assert b'error="invalid_token"' in answer
        assert started.refusals("bad_credentials") == 1


@on_both_tiers
def test_every_method_and_status_needs_leave(reviewer: Reviewing, tier: str) -> None:
    with guarded(reviewer.fake, tier) as started:
        for method in ("GET", "HEAD", "POST", "DELETE", "OPTIONS", "PATCH"):
            answer = started.ask(method=method)
            assert answer.startswith(b"HTTP/1.1 401 ")
            assert answer.endswith(b"\r\n\r\n") is (method == "HEAD")
        for field in ('If-None-Match: "v"', "If-None-Match: *"):
            refused(started.ask(field), 401, "Unauthorized")
        assert started.ask(ALICE, 'If-None-Match: "v"').startswith(b"HTTP/1.1 304 ")
        assert started.ask(ALICE, method="POST").startswith(b"HTTP/1.1 405 ")


@on_both_tiers
def test_health_is_open_to_all_and_nothing_that_looks_like_it(reviewer: Reviewing, tier: str) -> None:
    with guarded(reviewer.fake, tier) as started:
        for target in ("/livez", "/readyz", "/livez?verbose", "http://specmux/readyz"):
            assert started.ask(target=target).startswith(b"HTTP/1.1 200 "), target
        for target in (
            "/livez/",
            "//livez",
            "/LIVEZ",
            "/a#/livez",
            "/a?/livez",
            "/%6civez",
            "/livez;a",
            "/./livez",
        ):
            refused(started.ask(target=target), 401, "Unauthorized")


@on_both_tiers
def test_two_authorization_fields_are_a_bad_request(reviewer: Reviewing, tier: str) -> None:
    with guarded(reviewer.fake, tier) as started:
        for fields in (
            (ALICE, ALICE),
            (ALICE, "authorization: Basic x"),
            ("Authorization: Bearer wrong", ALICE),
        ):
            refused(started.ask(*fields), 400, "BadRequest")
        assert reviewer.fake.count(TOKEN, token="alice-token") == 0


@on_both_tiers
def test_path_that_is_not_allowed_is_forbidden(reviewer: Reviewing, tier: str) -> None:
    reviewer.fake.allows = lambda user, path: path == "/a" and user == "alice"
    with guarded(reviewer.fake, tier) as started, started.server.connect() as client:
        client.sendall(
            request("/a", ALICE) + request("/b", ALICE) + request("/a", BOB) + request("/a", ALICE)
        )
        assert read_answer(client).startswith(b"HTTP/1.1 200 ")
        found = refused(read_answer(client), 403, "Forbidden")
        assert found["message"] == 'user "alice" cannot get path "/b"'
        assert refused(read_answer(client), 403, "Forbidden")["message"].startswith('user "bob"')
        assert read_answer(client).startswith(b"HTTP/1.1 200 ")
        assert started.refusals("forbidden") == 2


@on_both_tiers
@pytest.mark.parametrize("is_pipelined", [True, False])
def test_nobody_gets_what_another_may_have(reviewer: Reviewing, tier: str, is_pipelined: bool) -> None:
    """One connection, as of a proxy that shares it: answers, 304 too, go to those who may have them."""
    reviewer.fake.allows = lambda user, path: user == "alice"
    callers = [
        (ALICE, 200), (BOB, 403), ("X-None: 1", 401), (ALICE, 200), ("Authorization: Bearer no", 401),
        (BOB, 403),
    ]  # fmt: skip
    asked = [(target, *caller) for target in ("/a", "/big", "/a", "/slow", "/wide") for caller in callers]
    asked += [("etag", caller, 304 if status == 200 else status) for caller, status in callers]
    messages = [
        request("/a", 'If-None-Match: "v"', caller) if target == "etag" else request(target, caller)
        for target, caller, _ in asked
    ]
    with guarded(reviewer.fake, tier) as started, started.server.connect() as client:
        if is_pipelined:
            client.sendall(b"".join(messages))
        for message, (target, caller, status) in zip(messages, asked, strict=True):
            if not is_pipelined:
                client.sendall(message)
            answer = read_answer(client)
            assert answer.startswith(f"HTTP/1.1 {status} ".encode()), (target, caller)
            assert (b'"Status"' in answer) is (status > 400)


def test_tiers_answer_the_same_behind_a_gate(reviewer: Reviewing) -> None:
    reviewer.fake.allows = lambda user, path: path != "/b"
    sent = [
        request(target, *fields, method=method)
        for fields in (
            (ALICE,),
            (),
            ("Authorization: Bearer no",),
            (ALICE, ALICE),
            (ALICE, 'If-None-Match: "v"'),
        )
        for target in ("/a", "/b", "/big", "/slow", "/livez", "http://x/a?y")
        for method in ("GET", "HEAD", "POST")
    ] * 2
    answers = {}
    for tier in ("parsed", "memoised"):
        with guarded(reviewer.fake, tier) as started:
            in_one_piece = timeless(started.server.exchange(*sent, request("/end", ALICE, close=True)))
            singly = [timeless(started.server.exchange(message, half_close=True)) for message in sent]
            answers[tier] = (in_one_piece, singly)
    assert answers["parsed"] == answers["parsed"] == answers["memoised"]
    assert answers["parsed"][0].count(b"HTTP/1.1 ") == len(sent) + 1


@on_both_tiers
def test_http_1_0_needs_leave_too(reviewer: Reviewing, tier: str) -> None:
    with guarded(reviewer.fake, tier) as started:
        old = b"GET /a HTTP/1.0\r\n\r\n"
        refused(started.server.exchange(old), 401, "Unauthorized")
        answer = started.server.exchange(old[:-2] + ALICE.encode() + b"\r\n\r\n")
        assert answer.startswith(b"HTTP/1.1 200 ")


@on_both_tiers
def test_revoked_token_is_refused_after_the_cache_time(reviewer: Reviewing, tier: str) -> None:
    with guarded(reviewer.fake, tier, cache_seconds=0.4) as started:
        assert started.ask(ALICE).startswith(b"HTTP/1.1 200 ")
        del reviewer.fake.users["alice-token"]
        assert started.ask(ALICE).startswith(b"HTTP/1.1 200 ")
        time.sleep(0.5)
        refused(started.ask(ALICE), 401, "Unauthorized")


@on_both_tiers
def test_withdrawn_access_is_refused_after_the_cache_time(reviewer: Reviewing, tier: str) -> None:
    with guarded(reviewer.fake, tier, cache_seconds=0.4) as started:
        assert started.ask(ALICE).startswith(b"HTTP/1.1 200 ")
        reviewer.fake.allows = lambda user, path: False
        time.sleep(0.5)
        refused(started.ask(ALICE), 403, "Forbidden")


def test_use_does_not_keep_a_revoked_token_alive(reviewer: Reviewing) -> None:
    with guarded(reviewer.fake, cache_seconds=0.4) as started, started.server.connect() as client:
        deadline = time.monotonic() + 1.5
        answer = b""
        while time.monotonic() < deadline and not answer.startswith(b"HTTP/1.1 401 "):
            client.sendall(request("/a", ALICE))
            answer = read_answer(client)
            reviewer.fake.users.pop("alice-token", None)
        assert answer.startswith(b"HTTP/1.1 401 ")


def test_without_a_cache_every_request_is_reviewed(reviewer: Reviewing) -> None:
    with guarded(reviewer.fake, cache_seconds=0.0) as started:
        for _ in range(3):
            assert started.ask(ALICE).startswith(b"HTTP/1.1 200 ")
        assert reviewer.fake.count(TOKEN, token="alice-token") == 3
        assert reviewer.fake.count(ACCESS, user="alice") == 3


def test_refusals_are_remembered_and_expire(reviewer: Reviewing) -> None:
    with guarded(reviewer.fake, cache_seconds=0.4) as started:
        for _ in range(3):
            started.ask("Authorization: Bearer later")
        assert reviewer.fake.count(TOKEN, token="later") == 1
        reviewer.fake.know("later", "late")
        time.sleep(0.5)
        assert started.ask("Authorization: Bearer later").startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("audiences", [["specmux"], ["other", "specmux"]])
def test_token_for_us_is_accepted(reviewer: Reviewing, audiences: list[str]) -> None:
    reviewer.fake.audiences = audiences
    with guarded(reviewer.fake, audiences=("specmux", "specmux2")) as started:
        assert started.ask(ALICE).startswith(b"HTTP/1.1 200 ")
        assert reviewer.fake.log[TOKEN][-1]["audiences"] == ["specmux", "specmux2"]


@pytest.mark.parametrize("audiences", [["https://kubernetes.default.svc"], [], None])
def test_token_for_others_is_refused(reviewer: Reviewing, audiences: list[str] | None) -> None:
    reviewer.fake.audiences = audiences
    with guarded(reviewer.fake, audiences=("specmux",)) as started:
        refused(started.ask(ALICE), 401, "Unauthorized")


@on_both_tiers
@pytest.mark.parametrize("kind", [TOKEN, ACCESS])
@pytest.mark.parametrize("fault", ["500", "403", "404", "200", "no review", "stopped", "hanging"])
def test_without_reviews_nobody_new_is_let_in(
    reviewer: Reviewing, tier: str, kind: str, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    """503 and not 401, and said so, until the cluster answers again. Who is known stays so for a while."""
    caplog.set_level(logging.INFO)
    quick = replace(POLLING, connect_timeout=1.0, idle_timeout=1.0, total_timeout=1.0)
    with guarded(reviewer.fake, tier, polling=quick, cache_seconds=30, review_grace=0) as started:
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
        assert other.result(10).startswith(b"HTTP/1.1 200 ")
        assert reviewer.fake.count(TOKEN, token="alice-token") == 1


def test_idle_connection_that_the_cluster_closed_is_no_failure(reviewer: Reviewing) -> None:
    with guarded(reviewer.fake, cache_seconds=0.0) as started:
        for _ in range(3):
            assert started.ask(ALICE).startswith(b"HTTP/1.1 200 ")
            reviewer.stop()
            reviewer.start()
        assert started.ask(ALICE).startswith(b"HTTP/1.1 200 ")


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
        return TokenVerdict(None if token.startswith("stranger") else proven(token[:12], "", (), {}))

    async def access(self, user: User, path: str, *, address: bytes) -> AccessVerdict:
        return AccessVerdict(True)


@pytest.mark.parametrize("prefix", ["stranger", "user"])
def test_ten_thousand_tokens_are_kept_in_bounded_memory_and_as_digests_only(prefix: str) -> None:
    cluster = KubernetesAuthenticator(
        Deciding(),  # type: ignore[arg-type]
        cache_seconds=300,
        review_grace=300,
        front_proxies=None,
        is_authorised_elsewhere=lambda message: False,
    )

    def asked(number: int) -> Asked:
        token = f"{prefix}{number}-" + "x" * 1000
        headers = CIMultiDictProxy(CIMultiDict({"Authorization": f"Bearer {token}"}))
        client = SimpleNamespace(peername=("192.0.2.1", 1))
        return Asked(SimpleNamespace(headers=headers), client, f"/{number}")  # type: ignore[arg-type]

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
    settings = Settings(auth=Auth(mode="kubernetes"), polling=POLLING)
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
    reviewer.fake.delay = {TOKEN: 30.0}
    with guarded(reviewer.fake, is_proven=False) as started, started.server.connect() as client:
        client.sendall(request("/a", ALICE))
        eventually(lambda: reviewer.fake.count(TOKEN, token="alice-token") == 1)
        begun = time.monotonic()
        started.server.call(started.server.server.stop())
        started.server.call(started.gate.close())
        assert time.monotonic() - begun < 5
        read_all(client)


@on_both_tiers
@pytest.mark.parametrize("fault", ["500", "403", "stopped", "hanging"])
def test_outage_of_the_cluster_does_not_stop_those_who_were_let_in(
    reviewer: Reviewing, tier: str, fault: str
) -> None:
    quick = replace(POLLING, connect_timeout=0.5, idle_timeout=0.5, total_timeout=0.5)
    with guarded(reviewer.fake, tier, polling=quick, cache_seconds=0.2, review_grace=60) as started:
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
        assert time.monotonic() - began < 0.5, "nobody waits for a cluster that is known to be away"
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
