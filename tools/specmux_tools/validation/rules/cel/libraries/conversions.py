"""Conversions between the types of the language (cel-go, common/types)."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from specmux_converters.go.text import general_text
from specmux_tools.validation.rules.cel.checking.declarations import CelLibrary, Overload
from specmux_tools.validation.rules.cel.checking.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    CelType,
    param,
    type_of,
)
from specmux_tools.validation.rules.cel.libraries.times import (
    duration_text,
    read_duration,
    read_timestamp,
    timestamp_text,
)
from specmux_tools.validation.rules.cel.values.arithmetic import (
    MAX_SECONDS,
    MIN_SECONDS,
    check_int,
    check_uint,
)
from specmux_tools.validation.rules.cel.values.values import (
    INT_MAX,
    INT_MIN,
    NANOS,
    UINT_MAX,
    CelError,
    Duration,
    Timestamp,
    TypeValue,
    UInt,
    bounded_int,
    type_name,
)

_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_NATURAL: Final = re.compile(r"[0-9]+", re.ASCII)
_DECIMAL: Final = re.compile(r"[+-]?(?:[0-9]++\.?[0-9]*+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?", re.ASCII)
_HEX: Final = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+", re.ASCII)
_WORDS: Final = re.compile(r"[+-]?(?:inf|infinity|nan)", re.IGNORECASE | re.ASCII)
_TRUE: Final = frozenset(("1", "t", "T", "TRUE", "true", "True"))
_FALSE: Final = frozenset(("0", "f", "F", "FALSE", "false", "False"))
_TWO_TO_64: Final = 2.0**64


def _conversion_error(wanted: CelType) -> CelError:
    return CelError(f"type conversion error from 'string' to '{wanted.name}'")


def _int_of_text(text: str) -> int:
    found = bounded_int(text.lstrip("+-")) if _INTEGER.fullmatch(text) else None
    if found is not None:
        found = -found if text[0] == "-" else found
        if INT_MIN <= found <= INT_MAX:
            return found
    raise _conversion_error(INT)


def _uint_of_text(text: str) -> UInt:
    found = bounded_int(text) if _NATURAL.fullmatch(text) else None
    if found is None or found > UINT_MAX:
        raise _conversion_error(UINT)
    return UInt(found)


def double_of_text(text: str) -> float:
    """Raises CelError."""
    if _DECIMAL.fullmatch(text):
        value = float(text)
        if value in (float("inf"), float("-inf")):
            raise _conversion_error(DOUBLE)
        return value
    if _WORDS.fullmatch(text):
        return float(text)
    if _HEX.fullmatch(text):
        try:
            return float.fromhex(text)
        except OverflowError as error:
            raise _conversion_error(DOUBLE) from error
    raise _conversion_error(DOUBLE)


def _bool_of_text(text: str) -> bool:
    if text not in _TRUE and text not in _FALSE:
        raise _conversion_error(BOOL)
    return text in _TRUE


def _int_of_double(value: float) -> int:
    if not INT_MIN < value < float(INT_MAX):
        raise CelError("integer overflow")
    return int(value)


def _uint_of_double(value: float) -> UInt:
    if not 0 <= value < _TWO_TO_64:
        raise CelError("unsigned integer overflow")
    return UInt(value)


def _text_of_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        raise CelError("invalid UTF-8 in bytes, cannot convert to string") from error


def _duration_of_text(text: str) -> Duration:
    nanos = read_duration(text)
    if nanos is None:
        raise _conversion_error(DURATION)
    return Duration(nanos)


def _timestamp_of_text(text: str) -> Timestamp:
    found = read_timestamp(text)
    if found is None:
        raise _conversion_error(TIMESTAMP)
    return _in_range(found)


def is_in_range(time: Timestamp) -> bool:
    return MIN_SECONDS <= time.seconds <= MAX_SECONDS


def at_second(seconds: int) -> Timestamp:
    """The time at a number of seconds since 1970."""
    return Timestamp(seconds * NANOS)


def _in_range(time: Timestamp) -> Timestamp:
    if not is_in_range(time):
        raise CelError("timestamp overflow")
    return time


def _same(value: Any) -> Any:
    return value


def _readers(wanted: CelType, *of: tuple[str, CelType, Callable[[Any], Any]]) -> tuple[Any, ...]:
    return tuple(Overload(name, (given,), wanted, apply) for name, given, apply in of)


TEXTS: Final[dict[str, Callable[[Any], str]]] = {
    "bool": lambda value: "true" if value else "false",
    "bytes": _text_of_bytes,
    "double": general_text,
    "google.protobuf.Duration": duration_text,
    "int": str,
    "uint": str,
    "string": _same,
    "google.protobuf.Timestamp": timestamp_text,
    "type": lambda value: str(value.name),
}
"""The text of a value, by its type."""

CONVERSIONS: Final = CelLibrary(
    {
        "type": (
            Overload("type", (param("A"),), type_of(param("A")), lambda value: TypeValue(type_name(value))),
        ),
        "dyn": (Overload("to_dyn", (param("A"),), DYN, _same),),
        "bool": _readers(BOOL, ("bool_to_bool", BOOL, _same), ("string_to_bool", STRING, _bool_of_text)),
        "bytes": _readers(BYTES, ("bytes_to_bytes", BYTES, _same), ("string_to_bytes", STRING, str.encode)),
        "double": _readers(
            DOUBLE,
            ("double_to_double", DOUBLE, _same),
            ("int64_to_double", INT, float),
            ("string_to_double", STRING, double_of_text),
            ("uint64_to_double", UINT, float),
        ),
        "duration": _readers(
            DURATION,
            ("duration_to_duration", DURATION, _same),
            ("string_to_duration", STRING, _duration_of_text),
        ),
        "int": _readers(
            INT,
            ("int64_to_int64", INT, _same),
            ("double_to_int64", DOUBLE, _int_of_double),
            ("duration_to_int64", DURATION, lambda value: value.nanos),
            ("string_to_int64", STRING, _int_of_text),
            ("timestamp_to_int64", TIMESTAMP, lambda value: value.seconds),
            ("uint64_to_int64", UINT, lambda value: check_int(int(value))),
        ),
        "string": _readers(
            STRING,
            ("string_to_string", STRING, _same),
            *((f"{of.kind}_to_string", of, TEXTS[of.name]) for of in (BOOL, BYTES, DOUBLE, DURATION, INT)),
            *((f"{of.kind}_to_string", of, TEXTS[of.name]) for of in (TIMESTAMP, UINT)),
        ),
        "timestamp": _readers(
            TIMESTAMP,
            ("timestamp_to_timestamp", TIMESTAMP, _same),
            ("int64_to_timestamp", INT, lambda seconds: _in_range(at_second(seconds))),
            ("string_to_timestamp", STRING, _timestamp_of_text),
        ),
        "uint": _readers(
            UINT,
            ("uint64_to_uint64", UINT, _same),
            ("double_to_uint64", DOUBLE, _uint_of_double),
            ("int64_to_uint64", INT, check_uint),
            ("string_to_uint64", STRING, _uint_of_text),
        ),
    }
)

DURATIONS_OF_INTS: Final = CelLibrary({"duration": _readers(DURATION, ("int64_to_duration", INT, Duration))})
