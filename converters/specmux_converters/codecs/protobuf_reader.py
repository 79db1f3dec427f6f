"""Reads gnostic's Protobuf messages, of either version, back into the JSON document they represent.

A reader of our own, because protobuf's stops at 100 nested messages, and one level of a schema takes four.
Like any Protobuf reader it skips unknown fields, and takes the last of a repeated singular scalar. A singular
message in several pieces, which a reader has to merge, is rejected: no writer produces it, and merging takes
time exponential in the depth. Equal values of ``x-*`` keys, examples and enums may be one object in the
document.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import cache
from typing import Any, Final

from specmux_converters.codecs.gnostic import MessageField, Messages, messages_of
from specmux_converters.codecs.wire import FIXED64, LENGTH, VARINT, extent, read_varint
from specmux_converters.document import Limits
from specmux_converters.errors import InvalidDocument, LimitExceeded
from specmux_converters.go.scalars import UINT64_MAX
from specmux_converters.go.text import INT64_MAX
from specmux_converters.go.yaml_dialects import GNOSTIC
from specmux_converters.go.yaml_reader import read_all
from specmux_converters.lazy.dataclasses import dataclass

ABSENT: Final = object()
"""Value of a oneof without a member: its key is left out."""
_YAML_SHARE: Final = 4
"""Characters of YAML that count as one value: parsing one costs as much as several fields."""
_WIRE_TYPES: Final = {"bool": VARINT, "int64": VARINT, "double": FIXED64}
_DIRECTIVE: Final = re.compile("(?:\\A\ufeff?|[\n\r\x85\u2028\u2029])%(?:TAG|YAML)")


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


def compile_reader(messages: Messages, root: str) -> Read:
    return _Compiler(messages).message(root)


@cache
def document_reader(version: str) -> Read:
    """``version``: of gnostic's messages, v2 or v3."""
    return compile_reader(messages_of(version), "Document")


def read_message(data: bytes, read: Read, limits: Limits) -> Any:
    """Raises InvalidDocument for malformed bytes, LimitExceeded past ``limits``."""
    limits.check_bytes(data)
    try:
        return read(Cursor(data, limits), 0, len(data), 1)
    except RecursionError as error:
        raise LimitExceeded("Protobuf nested too deeply") from error


@dataclass(frozen=True, slots=True)
class _Member:
    """A field on the wire, identified by its number and wire type."""

    key: str
    read: Read
    style: str
    """"one" (a scalar), "message", "many" (a repeated field) or "entry" (its values are entries of the object
    itself)."""


class _Compiler:
    def __init__(self, messages: Messages) -> None:
        self.messages = messages
        self.readers: dict[str, Read] = {"Any": _read_any}

    def message(self, name: str) -> Read:
        if name not in self.readers:
            # Messages refer to each other in cycles: create the reader first, then its table of fields.
            members: dict[int, _Member] = {}
            self.readers[name] = self._reader(name, members)
            members.update(self._members(self.messages[name]))
        return self.readers[name]

    def _reader(self, name: str, members: Mapping[int, _Member]) -> Read:
        match name:
            case "StringArray":
                return _wrapper(members, list)
            case "ItemsItem" | "TypeItem":
                return _wrapper(members, _as_one_or_list)
            case "DefaultType":
                return _wrapper(members, _as_scalar)
        facts = self.messages[name]
        if facts[0].is_keyless:
            return _wrapper(members, _as_only)
        return _object(members, tuple(fact.key for fact in facts if fact.required and fact.type == "string"))

    def _members(self, fields: tuple[MessageField, ...]) -> Mapping[int, _Member]:
        return dict(self._member(field) for field in fields)

    def _member(self, field: MessageField) -> tuple[int, _Member]:
        kind, style = field.type, _style(field.type)
        if field.is_pattern:
            kind, style = kind[1:-1], "entry"
        elif kind.startswith("["):
            kind, style = kind[1:-1], "many"
        read = self._entry(kind) if style == "entry" else self._value(kind)
        return field.number << 3 | _WIRE_TYPES.get(kind, LENGTH), _Member(field.key, read, style)

    def _value(self, kind: str) -> Read:
        if kind in SCALARS:
            return SCALARS[kind]
        if kind.startswith("{"):
            return _object({1 << 3 | LENGTH: _Member("", self._entry(kind[1:-1]), "entry")}, ())
        if kind.startswith("@"):
            members = (MessageField(1, "=", kind[1:], False), MessageField(2, "=", "Reference", False))
            return _wrapper(self._members(members), _as_only)
        return self.message(kind)

    def _entry(self, kind: str) -> Read:
        members = {1 << 3 | LENGTH: _Member("name", read_string, "one")}
        members[2 << 3 | _WIRE_TYPES.get(kind, LENGTH)] = _Member("value", self._value(kind), _style(kind))
        empty: Any = "" if kind == "string" else {}
        read = _object(members, ("name",))

        def read_entry(cursor: Cursor, pos: int, end: int, depth: int) -> tuple[str, Any]:
            # An entry is no level of the JSON value: it is a key and a value of the enclosing object.
            pair = read(cursor, pos, end, depth - 1)
            return pair["name"], pair.get("value", empty)

        return read_entry


def _object(members: Mapping[int, _Member], required_texts: tuple[str, ...]) -> Read:
    own: set[str] = set()

    def read(cursor: Cursor, pos: int, end: int, depth: int) -> dict[str, Any]:
        if depth > cursor.max_depth:
            raise LimitExceeded(f"nested more than {cursor.max_depth} levels deep")
        out: dict[str, Any] = {}
        fields_of: dict[str, int] = {}
        data = cursor.data
        while pos < end:
            tag = data[pos]
            pos += 1
            if tag > 0x7F:
                tag, pos = read_varint(data, pos - 1, end)
            member = members.get(tag)
            start, pos = extent(data, pos, end, tag)
            if member is None:
                continue
            cursor.left -= 1
            if cursor.left < 0:
                cursor.spend(0)
            value = member.read(cursor, start, pos, depth + 1)
            if value is ABSENT:
                continue
            if member.style == "one":
                out[member.key] = value
            elif member.style == "message":
                if member.key in out:
                    raise _in_pieces(pos)
                out[member.key] = value
            elif member.style == "many":
                out.setdefault(member.key, []).append(value)
            else:
                name, item = value
                if not own:
                    own.update(field.key for field in members.values() if field.style != "entry")
                    own.add("")  # the key of no field: creates the set only once
                if name in own and name:
                    raise InvalidDocument(f"Protobuf: an entry with a field's name, before byte {pos}")
                if fields_of.get(name) == tag:
                    raise InvalidDocument(f"Protobuf: two entries with one name, before byte {pos}")
                # Two fields of one key are legitimate: Go writes an "x-" key of a callback into both.
                fields_of[name] = tag
                out[name] = item
        for key in required_texts:
            # A required key with an empty text is omitted on the wire.
            out.setdefault(key, "")
        return out

    return read


def _wrapper(members: Mapping[int, _Member], shape: Callable[[list[Any]], Any]) -> Read:
    """A message without keys of its own, a oneof or a list: ``shape`` computes its value from the members."""

    def read(cursor: Cursor, pos: int, end: int, depth: int) -> Any:
        values: list[Any] = []
        last = None
        while pos < end:
            tag, pos = read_varint(cursor.data, pos, end)
            member = members.get(tag)
            start, pos = extent(cursor.data, pos, end, tag)
            if member is not None:
                if member is last and member.style == "message":
                    raise _in_pieces(pos)
                last = member
                cursor.spend(1)
                values.append(member.read(cursor, start, pos, depth))
        return shape(values)

    return read


def _style(kind: str) -> str:
    return "one" if kind in SCALARS else "message"


def _in_pieces(pos: int) -> InvalidDocument:
    return InvalidDocument(f"Protobuf: a message in pieces, before byte {pos}")


def _as_one_or_list(values: list[Any]) -> Any:
    return values[0] if len(values) == 1 else values


def _as_scalar(values: list[Any]) -> Any:
    # gnostic itself reads None for a default that is not a scalar, and writes the same bytes for it.
    value = values[-1] if values else None
    # An integer default beyond int64 would be written as 0.
    return float(value) if type(value) is int and value > INT64_MAX else value


def _as_only(values: list[Any]) -> Any:
    return values[-1] if values else ABSENT


def _read_any(cursor: Cursor, pos: int, end: int, depth: int) -> Any:
    text = _read_any_text(cursor, pos, end, depth)
    if text is ABSENT:
        return None
    known = (text, depth)
    if known not in cursor.texts:
        cursor.spend(len(text) // _YAML_SHARE)
        cursor.texts[known] = read_yaml(text, max_depth=cursor.max_depth - depth)
    return cursor.texts[known]


_read_any_text: Final = _wrapper({2 << 3 | LENGTH: _Member("", read_string, "one")}, _as_only)


def read_yaml(text: str, *, max_depth: int) -> Any:
    """Raises InvalidDocument unless it is one YAML document within JSON's data model; "" is null."""
    if "%" in text and _DIRECTIVE.search(text):
        raise InvalidDocument("YAML with a directive")
    documents = read_all(text, dialect=GNOSTIC, limits=Limits(max_depth=max_depth))
    first = next(documents, None)
    if next(documents, None) is not None:
        raise InvalidDocument("more than one YAML document")
    return None if first is None else first.value
