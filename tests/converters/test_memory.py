"""What stays within a sum of bytes."""

from __future__ import annotations

from collections import OrderedDict

from hypothesis import given
from hypothesis import strategies as st

from specmux_converters.memory import ByteBounded


def test_the_least_recently_used_go_first() -> None:
    gone: list[str] = []
    kept: ByteBounded[str, bytes] = ByteBounded(10, size=len, dropped=gone.append)
    for key in "abc":
        assert kept.put(key, b"123")
    assert (kept.get("a"), kept.peek("b")) == (b"123", b"123")
    assert kept.put("d", b"12345")
    assert gone == ["b", "c"]
    assert ([*kept], kept.values(), kept.bytes) == (["a", "d"], [b"123", b"12345"], 8)


def test_a_value_that_is_too_large_is_not_kept_and_what_its_key_had_is_gone() -> None:
    kept: ByteBounded[str, bytes] = ByteBounded(10, size=len, max_each=4)
    assert kept.put("a", b"1234")
    assert not kept.put("a", b"12345")
    assert (len(kept), kept.bytes, kept.get("a")) == (0, 0, None)


@given(
    st.lists(
        st.tuples(st.sampled_from(["put", "get", "pop", "clear"]), st.integers(0, 5), st.integers(0, 12))
    )
)
def test_it_is_a_mapping_with_a_bound(steps: list[tuple[str, int, int]]) -> None:
    kept: ByteBounded[int, bytes] = ByteBounded(10, size=len)
    model: OrderedDict[int, bytes] = OrderedDict()
    for step, key, size in steps:
        match step:
            case "put":
                kept.put(key, bytes(size))
                model.pop(key, None)
                if size <= 10:
                    model[key] = bytes(size)
                while sum(map(len, model.values())) > 10:
                    model.popitem(last=False)
            case "get":
                assert kept.get(key) == model.get(key)
                if key in model:
                    model.move_to_end(key)
            case "pop":
                assert kept.pop(key) == model.pop(key, None)
            case _:
                kept.clear()
                model.clear()
        assert [*kept] == [*model]
        assert kept.bytes == sum(map(len, model.values())) <= 10
