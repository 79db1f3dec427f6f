from __future__ import annotations

from specmux_converters.incremental.conversion_memo import ConversionMemo
from specmux_converters.incremental.parts import DocumentPart


def part(text: bytes = b"{}") -> DocumentPart:
    return DocumentPart(text, frozenset(), ())


def text(length: int, letter: str = "x") -> bytes:
    return letter.encode() * length


def test_memo_drops_what_was_used_longest_ago() -> None:
    memo = ConversionMemo(max_bytes=30)
    parts = {name: part() for name in "abc"}
    for name in "abc":
        memo.put(name, text(8), parts[name])
    assert memo.get("a", text(8)) is parts["a"]
    memo.put("d", text(8), part())
    assert memo.get("b", text(8)) is None
    assert memo.get("a", text(8)) is parts["a"]
    assert len(memo) == 3


def test_memo_counts_a_replaced_part_once_and_takes_none_that_is_too_large() -> None:
    memo = ConversionMemo(max_bytes=30)
    for _ in range(10):
        memo.put("a", text(18), part())
    memo.put("b", text(8), part())
    memo.put("c", text(29), part())
    assert memo.get("a", text(18)) is not None
    assert memo.get("b", text(8)) is not None
    assert memo.get("c", text(29)) is None
    memo.put("a", text(18), part(text(13)))
    assert memo.get("a", text(18)) is None


def test_memo_gives_a_part_for_its_own_text_only() -> None:
    memo = ConversionMemo()
    first, longer, second = part(), part(), part()
    memo.put("a", text(8), first)
    memo.put("a", text(9), longer)
    assert memo.get("a", text(8, "y")) is None
    memo.put("a", text(8, "y"), second)
    assert memo.get("a", text(8, "y")) is second
    assert memo.get("a", text(8)) is None
    assert memo.get("a", text(9)) is longer
    assert memo.get("b", text(8, "y")) is None


def test_value_is_parsed_once_from_the_json() -> None:
    made = part(b'{"a":{"b":1}}')
    assert made.value() == {"a": {"b": 1}}
    assert made.value() is made.value()
