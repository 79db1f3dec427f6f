"""Protobuf's well-known messages as literals: ``google.protobuf.Int64Value{value: 1}`` (cel-go,
common/types/provider.go)."""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Mapping
from typing import Any, Final

from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.validation.rules.cel.checking.declarations import CelLibrary, Message
from specmux_tools.validation.rules.cel.checking.types import (
    ANY,
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    EMPTY,
    INT,
    NULL,
    STRING,
    TIMESTAMP,
    UINT,
    CelType,
    list_of,
    map_of,
    wrapper_of,
)
from specmux_tools.validation.rules.cel.libraries.times import duration_text, timestamp_text
from specmux_tools.validation.rules.cel.values.values import (
    INT_MAX,
    INT_MIN,
    MISSING,
    NANOS,
    CelError,
    Duration,
    LiteralMap,
    MapValue,
    Opaque,
    Optional,
    Timestamp,
    TypeValue,
    UInt,
    UndecidedRule,
    go_type,
    is_list,
    type_name,
)

_JSON_LIST: Final = list_of(DYN)
_JSON_MAP: Final = map_of(STRING, DYN)
_SHOWN: Final = {"list": "list(dyn)", "map": "map(dyn, dyn)", "optional_type": "optional_type(dyn)"}
_MOST_JSON: Final = 2**53 - 1
"""The largest whole number that JSON has as a number."""


class EmptyMessage(Opaque):
    __slots__ = ()
    type_name = EMPTY.name

    def same(self, other: Any) -> bool:
        return type(other) is EmptyMessage


@dataclass(frozen=True, slots=True)
class _Field:
    type: CelType
    native: str
    """In Go, as errors call it."""
    convert: Callable[[Any, str], Any]


Fields = Mapping[str, _Field]
Make = Callable[[dict[str, Any]], Any]


def _message(name: str, of: CelType, fields: Fields, make: Make) -> Message:
    def made(values: Mapping[str, Any]) -> Any:
        return make({field: _convert(name, field, fields[field], value) for field, value in values.items()})

    return Message(of, {field: each.type for field, each in fields.items()}, made)


def _convert(message: str, name: str, field: _Field, value: Any) -> Any:
    try:
        return field.convert(value, field.native)
    except _NoCollection:
        of = _SHOWN.get(found := type_name(value), found)
        raise CelError(f"unsupported field type for {message}.{name}: {of}") from None
    except CelError as error:
        raise CelError(f"field type conversion error for {message}.{name} value type: {error}") from error


class _NoCollection(Exception):
    """A value for a field that is repeated."""


def _unfit(value: Any, native: str) -> CelError:
    match value:
        case bool():
            return CelError(f"type conversion error from bool to '{native}'")
        case UInt() | int():
            return CelError(f"unsupported type conversion from '{type_name(value)}' to {native}")
        case str():
            return CelError(f"unsupported native conversion from string to '{native}'")
        case TypeValue():
            return CelError("type conversion not supported for 'type'")
        case None | Duration() | Timestamp() | Opaque():
            of = type_name(value) if value is None else go_type(value).rpartition(".")[2]
            of = "*dynamicpb.Message" if of == "Empty" else of
            return CelError(f"type conversion error from '{of}' to '{native}'")
        case float() | bytes():
            return CelError(f"type conversion error from {type_name(value).title()} to '{native}'")
        case tuple():
            return CelError(f"type conversion error from list to '{native}'")
    if type(value) is LiteralMap:
        return CelError(f"type conversion error from map to '{native}'")
    of = "list(dyn)" if is_list(value) else "map(dyn, dyn)"
    return CelError(f"type conversion error from '{of}' to '{native}'")


def _plain(kind: type) -> Callable[[Any, str], Any]:
    def convert(value: Any, native: str) -> Any:
        if type(value) is Optional and value.value is not MISSING:
            return convert(value.value, native)
        if type(value) is not kind:
            raise _unfit(value, native)
        return value

    return convert


def _bound(kind: type, least: int, most: int, overflow: str) -> Callable[[Any, str], Any]:
    plain = _plain(kind)

    def convert(value: Any, native: str) -> Any:
        found = plain(value, native)
        if not least <= found <= most:
            raise CelError(overflow)
        return found

    return convert


def _single(value: Any, native: str) -> float:
    """A float of 32 bits."""
    found: float = _plain(float)(value, native)
    try:
        return float(struct.unpack("f", struct.pack("f", found))[0])
    except OverflowError:
        return float("inf") if found > 0 else float("-inf")


def _values(value: Any, native: str) -> tuple[Any, ...]:
    if not is_list(value):
        raise _NoCollection
    return tuple(_json(each, native) for each in value)


def _entries(value: Any, native: str) -> LiteralMap:
    if not isinstance(value, MapValue):
        raise _NoCollection
    return LiteralMap((_plain(str)(key, "string"), _json(value.at_key(key), native)) for key in value)


def _take_made(convert: Callable[[Any, str], Any], kind: type) -> Callable[[Any, str], Any]:
    """A list or map that an expression made: lists and maps of documents are not taken."""
    plain = _plain(kind)
    return lambda value, native: convert(plain(value, native), _VALUE)


def _json(value: Any, native: str) -> Any:
    """The value in protobuf's JSON."""
    match value:
        case None | bool() | str():
            return value
        case float():
            return value
        case int():
            return float(value) if abs(value) <= _MOST_JSON else str(int(value))
        case bytes():
            return base64.b64encode(value).decode()
        case Duration():
            return duration_text(value)
        case Timestamp():
            return timestamp_text(value)
        case Optional() if value.value is not MISSING:
            return _json(value.value, native)
        case tuple():
            return _values(value, native)
        case EmptyMessage():
            return LiteralMap()
    if type(value) is LiteralMap:
        return _entries(value, native)
    raise _unfit(value, native)


def _duration(given: dict[str, Any]) -> Duration:
    nanos = given.get("seconds", 0) * NANOS + given.get("nanos", 0)
    return Duration(min(max(nanos, INT_MIN), INT_MAX))


def _timestamp(given: dict[str, Any]) -> Timestamp:
    return Timestamp(given.get("seconds", 0) * NANOS + given.get("nanos", 0))


def _value(given: dict[str, Any]) -> Any:
    """The one kind of value that is left of several."""
    name, value = next(reversed(given.items()), ("null_value", None))
    return None if name == "null_value" else value


def _any(given: dict[str, Any]) -> Any:
    if given:
        raise UndecidedRule("what a google.protobuf.Any holds is not read here")
    raise CelError("unsupported conversion to ref.Val: (*dynamicpb.Message)")


_VALUE: Final = "*structpb.Value"
_INT64: Final = _Field(INT, "int64", _plain(int))
_INT32: Final = _Field(INT, "int32", _bound(int, -(2**31), 2**31 - 1, "integer overflow"))
_UINT32: Final = _Field(UINT, "uint32", _bound(UInt, 0, 2**32 - 1, "unsigned integer overflow"))
_ENUM: Final = _Field(INT, "protoreflect.EnumNumber", _INT32.convert)
_TEXT: Final = _Field(STRING, "string", _plain(str))
_BYTES: Final = _Field(BYTES, "[]uint8", _plain(bytes))
_BOOL: Final = _Field(BOOL, "bool", _plain(bool))
_DOUBLE: Final = _Field(DOUBLE, "float64", _plain(float))
_ENTRIES: Final = _Field(_JSON_MAP, _VALUE, _entries)
_VALUES: Final = _Field(_JSON_LIST, _VALUE, _values)
_STRUCT_VALUE: Final = _Field(_JSON_MAP, "*structpb.Struct", _take_made(_entries, LiteralMap))
_LIST_VALUE: Final = _Field(_JSON_LIST, "*structpb.ListValue", _take_made(_values, tuple))


def _wrapper(field: _Field, zero: Any) -> tuple[CelType, Fields, Make]:
    return wrapper_of(field.type), {"value": field}, lambda given: given.get("value", zero)


def _refuse_making(name: str) -> Make:
    def make(_: dict[str, Any]) -> Any:
        raise CelError(f"unknown type '{name}'")

    return make


_TIME: Final[Fields] = {"seconds": _INT64, "nanos": _INT32}
_VALUE_FIELDS: Final[Fields] = {
    "null_value": _ENUM,
    "number_value": _DOUBLE,
    "string_value": _TEXT,
    "bool_value": _BOOL,
    "struct_value": _STRUCT_VALUE,
    "list_value": _LIST_VALUE,
}
_MESSAGES: Final[Mapping[str, tuple[CelType, Fields, Make]]] = {
    "BoolValue": _wrapper(_BOOL, False),
    "BytesValue": _wrapper(_BYTES, b""),
    "DoubleValue": _wrapper(_DOUBLE, 0.0),
    "FloatValue": _wrapper(_Field(DOUBLE, "float32", _single), 0.0),
    "Int64Value": _wrapper(_INT64, 0),
    "Int32Value": _wrapper(_INT32, 0),
    "UInt64Value": _wrapper(_Field(UINT, "uint64", _plain(UInt)), UInt(0)),
    "UInt32Value": _wrapper(_UINT32, UInt(0)),
    "StringValue": _wrapper(_TEXT, ""),
    "Duration": (DURATION, _TIME, _duration),
    "Timestamp": (TIMESTAMP, _TIME, _timestamp),
    "Any": (ANY, {"type_url": _TEXT, "value": _BYTES}, _any),
    "Empty": (EMPTY, {}, lambda _: EmptyMessage()),
    "Struct": (_JSON_MAP, {"fields": _ENTRIES}, lambda given: given.get("fields", LiteralMap())),
    "ListValue": (_JSON_LIST, {"values": _VALUES}, lambda given: given.get("values", ())),
    "Value": (DYN, _VALUE_FIELDS, _value),
}
_UNMADE: Final = {
    "duration": (DURATION, _TIME),
    "list": (_JSON_LIST, {"values": _VALUES}),
    "null_type": (NULL, {}),
    "timestamp": (TIMESTAMP, _TIME),
}
"""Types that apiservers take for these messages, of which they can make none."""

_BY_NAME: Final = {
    **{
        f"google.protobuf.{name}": _message(f"google.protobuf.{name}", *each)
        for name, each in _MESSAGES.items()
    },
    **{name: _message(name, *each, _refuse_making(name)) for name, each in _UNMADE.items()},
}
WELL_KNOWN: Final = CelLibrary(
    types={name: each.type for name, each in _BY_NAME.items()},
    messages=_BY_NAME,
    constants={"google.protobuf.NullValue.NULL_VALUE": 0},
)
