"""Scalars of a Protobuf message, and the position of the reader."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from specmux_converters.codecs.wire import read_varint
from specmux_converters.document import Limits
from specmux_converters.errors import InvalidDocument, LimitExceeded
from specmux_converters.go.scalars import UINT64_MAX
from specmux_converters.go.text import INT64_MAX


class Cursor:
    """The state of reading one document."""

    __slots__ = ("data", "left", "max_depth", "texts")

    def __init__(self, data: bytes, limits: Limits) -> None:
        self.data = data
        self.left = limits.max_values
        self.max_depth = limits.max_depth
        self.texts: dict[tuple[str, int], Any] = {}
        """Values of Any{yaml} by text and depth: there are few distinct texts, each repeated many times."""

    def spend(self, values: int) -> None:
        self.left -= values
        if self.left < 0:
            raise LimitExceeded("more values than are allowed")


Read = Callable[[Cursor, int, int, int], Any]
"""Maps (cursor, start, end, depth of the JSON value) to the value of the message in that range."""


def read_string(cursor: Cursor, pos: int, end: int, _: int) -> str:
    try:
        return cursor.data[pos:end].decode()
    except UnicodeDecodeError as error:
        raise InvalidDocument(f"Protobuf: text that is not UTF-8, at byte {pos}") from error


def _read_bool(cursor: Cursor, pos: int, end: int, _: int) -> bool:
    return read_varint(cursor.data, pos, end)[0] != 0


def _read_int64(cursor: Cursor, pos: int, end: int, _: int) -> int:
    value = read_varint(cursor.data, pos, end)[0]
    return value - (1 << 64) if value >> 63 else value


def _read_double(cursor: Cursor, pos: int, _: int, __: int) -> int | float:
    value: float = struct.unpack_from("<d", cursor.data, pos)[0]
    if value - value != 0:
        raise InvalidDocument(f"Protobuf: a number that is not finite, at byte {pos}")
    if not value.is_integer() or (value == 0 and math.copysign(1, value) < 0):
        return value
    # A whole number as in Go's JSON: the shortest digits that denote this double.
    whole = int(value) if abs(value) < 1 << 53 else int(Decimal(repr(value)))
    return whole if -INT64_MAX - 1 <= whole <= UINT64_MAX else value


def _read_bytes(cursor: Cursor, pos: int, end: int, _: int) -> bytes:
    return cursor.data[pos:end]


SCALARS: Final[Mapping[str, Read]] = {
    "bytes": _read_bytes,
    "string": read_string,
    "bool": _read_bool,
    "int64": _read_int64,
    "double": _read_double,
}
