"""Protobuf's wire format: varints and field keys (https://protobuf.dev/programming-guides/encoding/)."""

from __future__ import annotations

from typing import Final

VARINT: Final = 0
FIXED64: Final = 1
LENGTH: Final = 2
FIXED32: Final = 5


def varint(value: int) -> bytes:
    """``value`` as an unsigned varint; a negative int64 takes its two's complement, as protobuf asks."""
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


def prefixed(prefix: bytes, body: bytes) -> bytes:
    """A length-delimited field: its key, the length of its body, the body."""
    length = len(body)
    return prefix + (_LENGTHS[length] if length < 1024 else varint(length)) + body
