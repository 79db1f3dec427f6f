"""A tree that is written piece by piece is the same bytes as one that is written at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmux_aggregator.api_discovery.streamed_json import (
    JSON_WRITER,
    CBORWriter,
    done,
    is_longer,
    self_described,
    write_tree,
)
from specmux_converters import codecs
from specmux_converters.media_types import CBOR

LEAVES = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20)
NAMES = st.text(max_size=8)
TREES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=30)
        # Objects are walked where they hold an array themselves: so each does.
        | st.builds(
            lambda name, items, rest: {**rest, name: items},
            NAMES,
            st.lists(inner),
            st.dictionaries(NAMES, inner),
        )
    ),
    max_leaves=60,
)


def as_pieces(tree: Any) -> Any:
    """With an iterator for each array."""
    match tree:
        case list():
            return map(as_pieces, tree)
        case dict():
            return {name: as_pieces(value) for name, value in tree.items()}
        case _:
            return tree


@pytest.mark.long
@given(st.dictionaries(NAMES, TREES, max_size=20))
def test_pieces_are_the_whole(members: dict[str, Any]) -> None:
    tree = {**members, "items": []}
    assert done(write_tree(as_pieces(tree), JSON_WRITER)) == orjson.dumps(tree)
    assert self_described(done(write_tree(as_pieces(tree), CBORWriter()))) == codecs.encode(tree, CBOR)


@pytest.mark.parametrize("count", [0, 1, 23, 24, 255, 256, 65_535, 65_536])
def test_arrays_and_objects_of_every_size(count: int) -> None:
    numbers, names = range(count), [f"k{number}" for number in range(count)]
    tree = {"list": [*numbers], "map": {name: [] for name in names}}
    pieces = {"list": iter(numbers), "map": {name: iter(()) for name in names}}
    assert self_described(done(write_tree(pieces, CBORWriter()))) == codecs.encode(tree, CBOR)


def test_writing_stops_after_each_leaf() -> None:
    assert sum(1 for _ in write_tree({"a": iter(range(3)), "b": 1}, JSON_WRITER)) == 4


def test_only_as_many_are_counted_as_matter() -> None:
    def endless() -> Iterator[int]:
        while True:
            yield 1

    assert is_longer(endless(), 100)
    assert not is_longer(range(100), 100)
