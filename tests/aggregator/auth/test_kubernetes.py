"""Mode kubernetes on a listening server, on both tiers: who is let in, and who is not."""

from __future__ import annotations

import time

import pytest

from aggregator.auth.guarded_server import ALICE, BOB, guarded, on_both_tiers, refused
from fakes.reviewer import ACCESS, TOKEN, Reviewing
from running.serving import eventually, read_answer, request, timeless


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
    with guarded(reviewer.fake, tier, cache_seconds=2.0) as started:
        before = time.monotonic()
        assert started.ask(ALICE).startswith(b"HTTP/1.1 200 ")
        del reviewer.fake.users["alice-token"]
        assert started.ask(ALICE).startswith(b"HTTP/1.1 200 ") or time.monotonic() > before + 2.0
        time.sleep(2.1)
        refused(started.ask(ALICE), 401, "Unauthorized")


@on_both_tiers
def test_withdrawn_access_is_refused_after_the_cache_time(reviewer: Reviewing, tier: str) -> None:
    with guarded(reviewer.fake, tier, cache_seconds=2.0) as started:
        assert started.ask(ALICE).startswith(b"HTTP/1.1 200 ")
        reviewer.fake.allows = lambda user, path: False
        time.sleep(2.1)
        refused(started.ask(ALICE), 403, "Forbidden")


def test_use_does_not_keep_a_revoked_token_alive(reviewer: Reviewing) -> None:
    with guarded(reviewer.fake, cache_seconds=0.4) as started, started.server.connect() as client:

        def is_refused() -> bool:
            client.sendall(request("/a", ALICE))
            answer = read_answer(client)
            reviewer.fake.users.pop("alice-token", None)
            return answer.startswith(b"HTTP/1.1 401 ")

        eventually(is_refused)


def test_without_a_cache_every_request_is_reviewed(reviewer: Reviewing) -> None:
    with guarded(reviewer.fake, cache_seconds=0.0) as started:
        for _ in range(3):
            assert started.ask(ALICE).startswith(b"HTTP/1.1 200 ")
        assert reviewer.fake.count(TOKEN, token="alice-token") == 3
        assert reviewer.fake.count(ACCESS, user="alice") == 3


def test_refusals_are_remembered_and_expire(reviewer: Reviewing) -> None:
    with guarded(reviewer.fake, cache_seconds=2.0) as started:
        before = time.monotonic()
        for _ in range(3):
            started.ask("Authorization: Bearer later")
        assert reviewer.fake.count(TOKEN, token="later") == 1 or time.monotonic() > before + 2.0
        reviewer.fake.know("later", "late")
        time.sleep(2.1)
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
