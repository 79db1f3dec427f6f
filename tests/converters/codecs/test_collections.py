"""Lists that are written a piece at a time."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from specmux_converters.codecs.objects.cbor import encode_object
from specmux_converters.codecs.objects.collections import PIECE, list_pieces
from specmux_converters.errors import InvalidArgument, Unrepresentable
from specmux_converters.media_types import CBOR, JSON, MediaType

FIELDS = {"kind": "PodList", "apiVersion": "v1", "metadata": {"resourceVersion": "7"}}


def pods(count: int, size: int = 10) -> Iterator[dict[str, Any]]:
    for number in range(count):
        yield {"metadata": {"name": f"pod-{number}", "note": "x" * size}, "spec": {"n": number, "f": 0.5}}


@pytest.mark.parametrize("count", [0, 1, 30, 3000])
def test_bytes_are_those_of_the_whole_list(count: int) -> None:
    whole = {**FIELDS, "items": list(pods(count))}
    as_cbor = b"".join(list_pieces(FIELDS, pods(count), count=count, media_type=CBOR))
    assert as_cbor == encode_object(whole)
    as_json = b"".join(list_pieces(FIELDS, pods(count), count=count, media_type=JSON))
    assert as_json == orjson.dumps(whole)


@pytest.mark.parametrize("media_type", [JSON, CBOR])
def test_what_waits_does_not_grow_with_the_list(media_type: MediaType) -> None:
    """tests/stress/stress_collections.py has 100 MB."""
    written = 0
    tracemalloc.start()
    try:
        for piece in list_pieces(FIELDS, pods(800, 10_000), count=800, media_type=media_type):
            written += len(piece)
            assert len(piece) < PIECE + 11_000
        assert written > 8_000_000
        assert tracemalloc.get_traced_memory()[1] < 1_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("count", [1, 3])
def test_items_are_as_many_as_was_said(count: int) -> None:
    with pytest.raises(InvalidArgument, match="announced"):
        list(list_pieces(FIELDS, pods(2), count=count, media_type=CBOR))


@pytest.mark.parametrize("media_type", [JSON, CBOR])
def test_what_has_no_form_is_refused(media_type: MediaType) -> None:
    with pytest.raises(Unrepresentable):
        list(list_pieces(FIELDS, [object()], count=1, media_type=media_type))
    with pytest.raises(InvalidArgument, match="text/plain"):
        list_pieces(FIELDS, [], count=0, media_type=MediaType("text/plain"))
