from __future__ import annotations

from typing import Any

import pytest

from specmux_converters.codecs import Fragments


class Encoder:
    """Counts how often it was asked."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self, value: Any) -> bytes:
        self.asked += 1
        return repr(value).encode()


def test_a_part_is_encoded_once_when_its_content_is_the_same() -> None:
    fragments, encode = Fragments(), Encoder()
    parts = [fragments.get("a", {"b": [1, "c"]}, encode) for _ in range(5)]
    assert len(set(parts)) == 1
    assert encode.asked == 1


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"a": 1}, {"a": 1.0}),
        ({"a": 1}, {"a": True}),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        ([0.0], [-0.0]),
        ("1", 1),
    ],
)
def test_parts_are_told_apart_when_they_are_only_nearly_equal(one: Any, other: Any) -> None:
    fragments, encode = Fragments(), Encoder()
    fragments.get("a", one, encode)
    fragments.get("a", other, encode)
    assert encode.asked == 2


def test_parts_are_told_apart_when_their_kinds_differ() -> None:
    fragments, encode = Fragments(), Encoder()
    fragments.get("a", {}, encode)
    fragments.get("b", {}, encode)
    assert encode.asked == 2


def test_a_part_is_encoded_anew_when_it_was_changed() -> None:
    fragments, part = Fragments(), {"a": 1}
    assert fragments.get("a", part, Encoder()) == b"{'a': 1}"
    part["a"] = 2
    assert fragments.get("a", part, Encoder()) == b"{'a': 2}"


def held(fragments: Fragments) -> int:
    generations = (fragments._young, fragments._old)
    return sum(
        len(part[1]) + len(encoded) for generation in generations for part, encoded in generation.items()
    )


def test_size_stays_below_its_bound_when_parts_keep_coming() -> None:
    fragments = Fragments(max_bytes=10_000)
    for n in range(5000):
        fragments.get("a", {"n": "x" * (n % 700)}, Encoder())
        assert held(fragments) <= 10_000
    assert held(fragments) > 2000


def test_a_part_larger_than_the_bound_is_encoded_and_not_kept() -> None:
    fragments = Fragments(max_bytes=100)
    assert len(fragments.get("a", "x" * 500, Encoder())) == 502
    assert held(fragments) == 0


def test_parts_in_use_stay_when_others_come_and_go() -> None:
    fragments, encode = Fragments(max_bytes=10_000), Encoder()
    for n in range(2000):
        fragments.get("a", "in use", encode)
        fragments.get("a", str(n) * 20, Encoder())
    assert encode.asked == 1


@pytest.mark.parametrize("value", [object(), {1: 2}, float, 2**70])
def test_type_error_is_raised_when_the_part_is_not_of_json(value: Any) -> None:
    with pytest.raises(TypeError):
        Fragments().get("a", value, Encoder())


def test_nothing_is_kept_when_encoding_fails() -> None:
    def fail(_: Any) -> bytes:
        raise ValueError("no form")

    fragments = Fragments()
    with pytest.raises(ValueError, match="no form"):
        fragments.get("a", {}, fail)
    assert held(fragments) == 0
