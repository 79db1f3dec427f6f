from __future__ import annotations

import gzip
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmux_aggregator.http.content_codings import BadCoding, TooLarge, decode_body, encode_body
from specmux_aggregator.http.messages import Coding

MIB = 1024 * 1024
PACKED = (Coding.GZIP, Coding.ZSTD)


@given(st.binary(max_size=4000), st.sampled_from(list(Coding)))
def test_bytes_come_back_as_they_were(body: bytes, coding: Coding) -> None:
    packed = encode_body(body, coding)
    assert decode_body(packed, coding, max_bytes=4000) == body
    assert encode_body(body, coding) == packed


@pytest.mark.parametrize("coding", PACKED)
def test_every_cut_is_noticed(coding: Coding) -> None:
    packed = encode_body(b"something worth packing " * 50, coding)
    for size in range(len(packed)):
        with pytest.raises((BadCoding, TooLarge)):
            decode_body(packed[:size], coding, max_bytes=MIB)


@pytest.mark.parametrize("coding", list(Coding))
def test_bound_is_what_comes_out_at_most(coding: Coding) -> None:
    packed = encode_body(b"x" * 1000, coding)
    assert len(decode_body(packed, coding, max_bytes=1000)) == 1000
    with pytest.raises(TooLarge):
        decode_body(packed, coding, max_bytes=999)


def test_what_follows_the_stream_is_refused() -> None:
    with pytest.raises(BadCoding, match="follows"):
        decode_body(gzip.compress(b"a") + b"more", Coding.GZIP, max_bytes=MIB)


@pytest.mark.parametrize("coding", PACKED)
def test_bomb_costs_no_more_than_the_bound(coding: Coding) -> None:
    packed = encode_body(bytes(64 * MIB), coding)
    tracemalloc.start()
    try:
        with pytest.raises(TooLarge):
            decode_body(packed, coding, max_bytes=16 * MIB)
        assert tracemalloc.get_traced_memory()[1] < 40 * MIB
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("coding", [Coding.GZIP, Coding.ZSTD])
def test_encoded_bytes_occupy_no_more_than_their_length(coding: Coding) -> None:
    body = b"0123456789" * 100_000
    tracemalloc.start()
    try:
        kept = [encode_body(body, coding) for _ in range(20)]
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < sum(map(len, kept)) + 200_000
