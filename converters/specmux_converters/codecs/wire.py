"""Protobuf's wire format: varints and field keys (https://protobuf.dev/programming-guides/encoding/)."""

from __future__ import annotations

from typing import Final

from specmux_converters.errors import InvalidDocument

VARINT: Final = 0
FIXED64: Final = 1
LENGTH: Final = 2
FIXED32: Final = 5

_FIXED: Final = {FIXED64: 8, FIXED32: 4}
"""Bytes of the fixed-length values."""


def varint(value: int) -> bytes:
    """``value`` as an unsigned varint; a negative int64 as its two's complement."""
    value &= 0xFFFF_FFFF_FFFF_FFFF
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def key(number: int, wire_type: int) -> bytes:
    return varint(number << 3 | wire_type)


_LENGTHS: Final = tuple(varint(length) for length in range(1024))


def write_delimited(prefix: bytes, body: bytes) -> bytes:
    """A length-delimited field: its key, the length of its body, the body."""
    length = len(body)
    return prefix + (_LENGTHS[length] if length < 1024 else varint(length)) + body


def extent(data: bytes, pos: int, end: int, tag: int) -> tuple[int, int]:
    """The start and end of a field's value."""
    wire_type = tag & 7
    if wire_type == LENGTH:
        length = data[pos] if pos < end else 0x80
        start = pos + 1
        if length > 0x7F:
            length, start = read_varint(data, pos, end)
        after = start + length
    elif wire_type == VARINT:
        start, after = pos, read_varint(data, pos, end)[1]
    elif wire_type in _FIXED:
        start, after = pos, pos + _FIXED[wire_type]
    else:
        raise InvalidDocument(f"Protobuf: wire type {wire_type} at byte {pos}")
    # Field numbers range from 1 to 2^29 - 1.
    if after > end or not 8 <= tag < 1 << 32:
        raise InvalidDocument(f"Protobuf: a field that is cut short or has no number, at byte {pos}")
    return start, after


def read_varint(data: bytes, pos: int, end: int) -> tuple[int, int]:
    value = shift = 0
    while pos < end and shift < 64:
        byte = data[pos]
        pos += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80 and value >> 64 == 0:
            return value, pos
        shift += 7
    raise InvalidDocument(f"Protobuf: a varint without an end, or beyond 64 bits, at byte {pos}")
