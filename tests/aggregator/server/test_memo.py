"""What is answered from memory, what is remembered, and what makes it forgotten."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from running.serving import TIERS, FakeService, Running, eventually, read_answer, request, running
from specmux_aggregator.http.messages import Request
from specmux_aggregator.http.prepared_answer import PreparedAnswer, prepare
from specmux_aggregator.server import memo as memo_module
from specmux_aggregator.server.memo import KEY_MAX, RequestMemo, Slot
from specmux_aggregator.server.protocols import Pending
from specmux_aggregator.server.stats import Cell


def ask(started: Running, *sent: bytes) -> list[bytes]:
    """The bodies of the answers, asked for one after the other on one connection."""
    with started.connect() as client:
        bodies = []
        for one in sent:
            client.sendall(one)
            bodies.append(read_answer(client).partition(b"\r\n\r\n")[2])
        return bodies


@pytest.mark.parametrize("tier", TIERS)
def test_new_generation_is_seen_by_the_next_request(tier: str) -> None:
    with running(tier) as started, started.connect() as client:
        for generation in (1, 2, 3):
            started.service.generation = generation
            for _ in range(4):
                client.sendall(request())
                assert read_answer(client).endswith(b"/a? None None %d\n" % generation)


@pytest.mark.parametrize("tier", TIERS)
def test_client_of_http_1_0_is_told_each_time_that_the_connection_stays(tier: str) -> None:
    with running(tier) as started, started.connect() as client:
        for _ in range(5):
            client.sendall(b"GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            assert b"\r\nConnection: keep-alive\r\n" in read_answer(client)


def test_answer_is_not_remembered_past_its_time() -> None:
    until = time.monotonic() + 2.0
    service = FakeService(good_until=until)
    with running("memoised", service=service) as started:
        ask(started, *[request()] * 10)
        assert len(service.asked) == 2 or time.monotonic() > until
        eventually(lambda: started.counts.memo_hits > 0)
        time.sleep(max(0.0, until + 0.1 - time.monotonic()))
        before = len(service.asked)
        ask(started, *[request()] * 5)
        assert len(service.asked) == before + 5


def test_without_memo_the_service_is_asked_each_time() -> None:
    with running("parsed") as started:
        ask(started, *[request()] * 10)
        assert len(started.service.asked) == 10
        eventually(lambda: started.counts.at_once == 10)


def test_unique_header_costs_neither_the_service_nor_the_parser() -> None:
    with running("memoised") as started:
        bodies = ask(started, *[request("/a", f"Audit-Id: {number}") for number in range(50)])
        assert set(bodies) == {b"/a? None None 1\n"}
        assert len(started.service.asked) == 2
        eventually(lambda: started.counts.at_once == 50)
        assert started.counts.memo_hits == 48
        answers = started.server._dispatch.answers
        assert (len(answers._exact), len(answers._deciding)) == (0, 1)


def test_request_that_repeats_behind_unique_ones_is_known_by_its_bytes() -> None:
    with running("memoised") as started:
        ask(started, *[request("/a", f"Audit-Id: {number}") for number in range(5)], *[request()] * 3)
        assert len(started.server._dispatch.answers._exact) == 1


@pytest.mark.parametrize(
    "fields",
    [
        ("Accept: a",),
        ("Accept-Encoding: gzip",),
        ('If-None-Match: "w"',),
        ('If-Match: "v"',),
        ("Accept: b", "Accept: c"),
    ],
)
def test_fields_that_matter_are_told_apart(fields: tuple[str, ...]) -> None:
    with running("memoised") as started:
        ask(started, *[request(), request("/a", *fields)] * 5)
        asked = {
            (one.accept, one.accept_encoding, one.if_none_match, one.if_match)
            for one in started.service.asked
        }
        assert len(asked) == 2


def test_flood_of_unknown_hashes_leaves_nothing_in_the_memos() -> None:
    with running("memoised") as started:
        ask(started, *[request(f"/a?hash={number:0128X}") for number in range(1000)])
        answers = started.server._dispatch.answers
        assert len(answers._exact) == len(answers._deciding) == len(answers._similar) == 0


@pytest.mark.parametrize("field", ["User-Agent", "If-None-Match"])
def test_flood_of_unlike_fields_that_decide_leaves_nothing_by_what_decides(field: str) -> None:
    with running("memoised") as started:
        ask(started, *[request("/a", f"{field}: n{number}") for number in range(300)])
        answers = started.server._dispatch.answers
        assert len(answers._exact) == len(answers._deciding) == len(answers._lines) == 0


def test_request_lines_that_are_known_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memo_module, "LINES_MAX", 4)
    with running("memoised") as started:
        for number in range(20):
            ask(started, *[request(f"/{number}", f"Audit-Id: {n}") for n in range(3)])
            assert len(started.server._dispatch.answers._lines) <= 4
        assert len(started.service.asked) == 40
        again = [request("/3", f"Audit-Id: {n}") for n in range(10, 14)]
        assert set(ask(started, *again)) == {b"/3? None None 1\n"}
        assert len(started.service.asked) == 40


def test_long_requests_are_answered_but_not_remembered() -> None:
    with running("memoised") as started:
        long = request("/a", "User-Agent: " + "x" * KEY_MAX)
        ask(started, *[long] * 5)
        longer = request("/a", "Accept: " + "x" * KEY_MAX)
        ask(started, *[longer] * 5)
        eventually(lambda: started.counts.at_once == 10)
        assert started.counts.memo_hits == 0
        answers = started.server._dispatch.answers
        assert len(answers._exact) == len(answers._deciding) == 0
        assert sum(one.accept is not None for one in started.service.asked) == 5


def test_requests_with_a_token_are_answered_but_not_remembered() -> None:
    with running() as started:
        asked = request("/a", "authorization: Bearer secret")
        answers = [started.exchange_in_step(*[asked] * 4, request(close=True)) for _ in range(2)]
        assert all(answer.count(b" 200 OK") == 5 for answer in answers)
        counts = started.counts
        assert (counts.at_once, counts.memo_hits) == (10, 0)


def test_memo_is_shared_by_connections_but_not_by_targets() -> None:
    with running("memoised") as started:
        for _ in range(5):
            for target in (b"/a", b"/b"):
                assert ask(started, request(target.decode())) == [target + b"? None None 1\n"]
        eventually(lambda: started.counts.memo_hits == 6)


def test_service_that_fails_at_once_costs_one_answer_not_the_connection_to_others() -> None:
    class Failing(FakeService):
        def immediate(self, request: Request) -> PreparedAnswer | Pending:
            if request.path == "/fails":
                raise RuntimeError("a bug")
            return super().immediate(request)

    with running("memoised", service=Failing()) as started, started.connect() as other:
        assert b" 500 Internal Server Error\r\n" in started.exchange(request("/fails"))
        other.sendall(request())
        assert read_answer(other).endswith(b"/a? None None 1\n")


def slot(body: bytes = b"", good_until: float | None = None) -> Slot:
    return Slot(replace(prepare(200, [], body), good_until=good_until), Cell())


def test_memo_knows_a_key_from_its_second_offer_on() -> None:
    memo: RequestMemo[bytes] = RequestMemo(4)
    first, second = slot(), slot()
    memo.offer(b"a", first)
    assert memo.get(b"a") is None
    memo.offer(b"a", second)
    assert memo.get(b"a") is second


def test_memo_keeps_what_is_used_and_drops_what_is_not() -> None:
    memo: RequestMemo[bytes] = RequestMemo(4)
    used = slot()
    for key in (b"used", b"unused"):
        memo.offer(key, used)
        memo.offer(key, used)
    for number in range(100):
        memo.offer(b"%d" % number, used)
        memo.offer(b"%d" % number, used)
        assert memo.get(b"used") is used
    assert memo.get(b"unused") is None


def test_memo_holds_nothing_of_requests_that_all_differ() -> None:
    memo: RequestMemo[bytes] = RequestMemo()
    for number in range(20_000):
        memo.offer(b"%d" % number, slot())
    assert len(memo) == 0


def test_memo_is_bounded_by_the_bytes_it_keeps_alive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memo_module, "GENERATION_BYTES", 1000)
    memo: RequestMemo[bytes] = RequestMemo(1024)
    large = slot(b"x" * 400)
    for number in range(100):
        memo.offer(b"%d" % number, large)
        memo.offer(b"%d" % number, large)
    assert len(memo) <= 6


@given(st.lists(st.binary(max_size=1), max_size=200))
def test_memo_never_holds_more_than_two_generations_nor_another_keys_answer(keys: list[bytes]) -> None:
    memo: RequestMemo[bytes] = RequestMemo(8)
    slots = {key: slot(key) for key in keys}
    for key in keys:
        memo.offer(key, slots[key])
        found = memo.get(key)
        assert found is None or found is slots[key]
        assert len(memo) <= 16
    memo.clear()
    assert len(memo) == 0
    assert all(memo.get(key) is None for key in keys)


def test_slot_is_good_until_its_time() -> None:
    assert slot().is_good(1e12)
    assert slot(good_until=10.0).is_good(9.9)
    assert not slot(good_until=10.0).is_good(10.0)
