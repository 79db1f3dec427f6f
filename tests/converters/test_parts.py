from __future__ import annotations

from specmux_converters.parts import ConversionMemo, Part


def part(text: bytes = b"{}") -> Part:
    return Part(text, frozenset(), ())


def test_memo_drops_what_was_used_longest_ago() -> None:
    memo = ConversionMemo(max_bytes=30)
    parts = {name: part() for name in "abc"}
    for name in "abc":
        memo.put(name, parts[name], cost=10)
    assert memo.get("a") is parts["a"]
    memo.put("d", part(), cost=10)
    assert memo.get("b") is None
    assert memo.get("a") is parts["a"]
    assert len(memo) == 3


def test_memo_counts_a_replaced_part_once_and_takes_none_that_is_too_large() -> None:
    memo = ConversionMemo(max_bytes=30)
    for _ in range(10):
        memo.put("a", part(), cost=20)
    memo.put("b", part(), cost=10)
    memo.put("c", part(), cost=31)
    assert memo.get("a") is not None
    assert memo.get("b") is not None
    assert memo.get("c") is None
    memo.put("a", part(), cost=31)
    assert memo.get("a") is None


def test_value_is_parsed_once_from_the_json() -> None:
    made = part(b'{"a":{"b":1}}')
    assert made.value() == {"a": {"b": 1}}
    assert made.value() is made.value()
