from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmux_converters.codecs.wire import FIXED64, LENGTH, key, varint, write_delimited

VARINTS = {0: "00", 1: "01", 127: "7f", 128: "8001", 300: "ac02", 2**63 - 1: "ffffffffffffffff7f"}


@pytest.mark.parametrize(("value", "data"), [*VARINTS.items(), (-1, "ffffffffffffffffff01")])
def test_a_varint_has_seven_bits_a_byte_when_written(value: int, data: str) -> None:
    assert varint(value).hex() == data


@given(st.integers(-(2**63), 2**63 - 1))
def test_a_varint_is_the_number_again_when_read(value: int) -> None:
    read = sum((byte & 0x7F) << (7 * place) for place, byte in enumerate(varint(value)))
    assert (read ^ (1 << 63)) - (1 << 63) == value


def test_a_key_holds_number_and_wire_type_when_written() -> None:
    assert (key(1, LENGTH), key(10, FIXED64), key(36, LENGTH)) == (b"\x0a", b"\x51", b"\xa2\x02")


@pytest.mark.parametrize("size", [0, 1, 127, 128, 1023, 1024, 70_000])
def test_a_body_stands_behind_its_length_when_prefixed(size: int) -> None:
    assert write_delimited(b"\x0a", b"x" * size) == b"\x0a" + varint(size) + b"x" * size
