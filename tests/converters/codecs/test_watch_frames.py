from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmux_converters.codecs.objects.watch_frames import FrameReader, write_frame
from specmux_converters.errors import InvalidDocument, LimitExceeded


def test_length_stands_in_front_big_endian() -> None:
    assert write_frame(b"\x0a") == b"\x00\x00\x00\x01\x0a"
    assert write_frame(bytes(258))[:4] == b"\x00\x00\x01\x02"


@given(frames=st.lists(st.binary(max_size=20)), cuts=st.lists(st.integers(1, 9), min_size=1))
def test_frames_come_back_however_the_stream_is_cut(frames: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(map(write_frame, frames))
    reader, found, at = FrameReader(), [], 0
    while at < len(stream):
        size = cuts[len(found) % len(cuts)]
        found += reader.feed(stream[at : at + size])
        at += size
    reader.close()
    assert found == frames


def test_frame_is_refused_by_its_length_when_it_is_too_long() -> None:
    reader = FrameReader(max_bytes=3)
    frames = reader.feed(write_frame(b"abc") + (4).to_bytes(4, "big"))
    assert next(frames) == b"abc"
    with pytest.raises(LimitExceeded, match="4 bytes, more than the 3"):
        next(frames)


def test_frames_that_nobody_took_come_later() -> None:
    reader = FrameReader()
    reader.feed(write_frame(b"a"))
    assert list(reader.feed(write_frame(b""))) == [b"a", b""]


@pytest.mark.parametrize("rest", [b"\0", b"\0\0\0\1", b"\0\0\0\2a"])
def test_stream_that_ends_inside_a_frame_is_noticed(rest: bytes) -> None:
    reader = FrameReader()
    assert list(reader.feed(rest)) == []
    with pytest.raises(InvalidDocument, match="inside a frame"):
        reader.close()
