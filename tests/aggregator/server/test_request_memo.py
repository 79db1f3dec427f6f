"""The memo of requests: bounded whatever comes, and only what is asked again stays."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmux_aggregator.http.prepared import prepare
from specmux_aggregator.server import request_memo
from specmux_aggregator.server.request_memo import RequestMemo, Slot
from specmux_aggregator.server.stats import Cell


def slot(body: bytes = b"", good_until: float | None = None) -> Slot:
    return Slot(prepare(200, [], body, good_until=good_until), Cell())


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
    monkeypatch.setattr(request_memo, "GENERATION_BYTES", 1000)
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
