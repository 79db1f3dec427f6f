"""Documents as gnostic openapi.v3 Protobuf, byte for byte as the Go reference writes them.

The reference is kube-openapi's ``handler3.ToV3ProtoBinary``: gnostic reads the JSON as YAML nodes and Go's
protobuf library writes what it kept. So a value of an unexpected type is what gnostic makes of such a node,
and what gnostic refuses (or panics on) is refused here.

Each message of the field table is compiled once to a function from a JSON value to the message's body.
"""

from __future__ import annotations

import functools
import re
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from specmux_converters.codecs import gnostic_v3
from specmux_converters.codecs.fragments import Fragments
from specmux_converters.codecs.gnostic import Field, Messages, read_facts
from specmux_converters.codecs.go_scalars import INT64_MAX
from specmux_converters.codecs.wire import FIXED64, LENGTH, VARINT, key, prefixed, varint
from specmux_converters.codecs.yaml_writer import write_yaml
from specmux_converters.errors import LimitExceeded, Unrepresentable
from specmux_converters.media_types import PROTOBUF

if TYPE_CHECKING:
    from specmux_converters.document import Document

Write = Callable[[Any, Fragments], bytes]
"""A JSON value to a message body, or to whole fields with their keys."""

_NAME: Final = key(1, LENGTH)
_VALUE: Final = key(2, LENGTH)

_SHARED: Final = frozenset(
    (
        ("Components", "schemas"),
        ("PathItem", "parameters"),
        ("Operation", "parameters"),
        ("Operation", "requestBody"),
        ("Operation", "responses"),
    )
)
"""Fields whose values repeat, within a document or between the documents of a server."""


class _RefusedError(Exception):
    """Why the value cannot be written; the keys that lead to it gather while this rises."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path: list[str] = []


def write_document(document: Document, fragments: Fragments) -> bytes:
    """Raises Unrepresentable for what gnostic's messages have no place for."""
    try:
        return _compiled()["Document"](document, fragments)
    except _RefusedError as refused:
        pointer = "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in reversed(refused.path))
        raise Unrepresentable(f"Protobuf: {refused.reason}", pointer=pointer) from refused
    except RecursionError as error:
        raise LimitExceeded("nested too deeply for Protobuf") from error


@functools.cache
def _compiled() -> Mapping[str, Write]:
    return _Compiler(read_facts(gnostic_v3.FACTS)).writers


class _Compiler:
    """Messages refer to each other in cycles, so they are looked up in ``writers`` when they are written."""

    def __init__(self, messages: Messages) -> None:
        self.messages = messages
        self.writers: dict[str, Write] = {
            "Any": _write_any,
            "DefaultType": _write_default,
            "StringArray": _write_string_array,
        }
        self.writers["AnyOrExpression"] = self._expression()
        self.writers["ItemsItem"] = self._items()
        self.writers["AdditionalPropertiesItem"] = self._additional_properties()
        for name, fields in messages.items():
            if name not in self.writers:
                self.writers[name] = _object_writer(self._fields(name, fields), fields)

    def _fields(self, message: str, fields: Iterable[Field]) -> dict[str, tuple[int, Write]]:
        return {
            field.key: (field.number, self._field(message, field)) for field in fields if not field.is_keyless
        }

    def _field(self, message: str, field: Field) -> Write:
        prefix = key(field.number, LENGTH)
        if field.is_pattern:
            return self._entry(prefix, field.type.strip("{}"))
        match field.type:
            case "string":
                return _string_field(prefix)
            case "bool":
                return _bool_field(key(field.number, VARINT))
            case "int64":
                return _int_field(key(field.number, VARINT))
            case "double":
                return _double_field(key(field.number, FIXED64))
            case "[string]":
                return _strings_field(prefix)
        if field.type.startswith("["):
            write = _repeated_field(prefix, self._body(field.type[1:-1]))
        elif (message, field.key) == ("Components", "schemas"):
            write = _message_field(prefix, self._named_list(field.type[1:-1], shared=True))
        else:
            write = _message_field(prefix, self._body(field.type))
        if (message, field.key) in _SHARED and field.key != "schemas":
            return _shared(f"{message}.{field.key}", write)
        return write

    def _body(self, kind: str) -> Write:
        if kind.startswith("{"):
            return self._named_list(kind[1:-1])
        if kind.startswith("@"):
            return self._or_reference(kind[1:])
        return self._named(kind)

    def _named(self, message: str) -> Write:
        writers = self.writers

        def write(value: Any, fragments: Fragments) -> bytes:
            return writers[message](value, fragments)

        return write

    def _named_list(self, kind: str, *, shared: bool = False) -> Write:
        entry = self._entry(_NAME, kind, shared=shared)

        def write(value: Any, fragments: Fragments) -> bytes:
            return b"".join([entry(pair, fragments) for pair in _pairs(value)])

        return write

    def _entry(self, prefix: bytes, kind: str, *, shared: bool = False) -> Write:
        """Writes one (name, value) pair of a named list, as a field with key ``prefix``."""
        name_field = _string_field(_NAME)
        value_field = (
            _lax_string_field(_VALUE) if kind == "string" else _message_field(_VALUE, self._body(kind))
        )
        if shared:
            value_field = _shared(kind, value_field)

        def write(pair: tuple[str, Any], fragments: Fragments) -> bytes:
            name, value = pair
            try:
                return prefixed(prefix, name_field(name, fragments) + value_field(value, fragments))
            except _RefusedError as refused:
                refused.path.append(name)
                raise

        return write

    def _or_reference(self, message: str) -> Write:
        """The oneof of a message and a Reference: where both would do, gnostic keeps the Reference."""
        write_message, write_reference = self._named(message), self._named("Reference")
        as_message, as_reference = key(1, LENGTH), key(2, LENGTH)

        def write(value: Any, fragments: Fragments) -> bytes:
            if type(value) is dict and "$ref" in value:
                return prefixed(as_reference, write_reference(value, fragments))
            return prefixed(as_message, write_message(value, fragments))

        return write

    def _additional_properties(self) -> Write:
        as_schema, as_bool = key(1, LENGTH), key(2, VARINT)
        write_schema = self._or_reference("Schema")

        def write(value: Any, fragments: Fragments) -> bytes:
            if type(value) is bool:
                return as_bool + (b"\1" if value else b"\0")
            return prefixed(as_schema, write_schema(value, fragments))

        return write

    def _items(self) -> Write:
        return _message_field(key(1, LENGTH), self._or_reference("Schema"))

    def _expression(self) -> Write:
        # gnostic tries Any, then Expression, and the last that fits wins: Expression always fits.
        return _message_field(key(2, LENGTH), self._named_list("Any"))


def _object_writer(by_key: dict[str, tuple[int, Write]], fields: Iterable[Field]) -> Write:
    required = frozenset(field.key for field in fields if field.required)
    patterns = [(re.compile(pattern), *by_key.pop(pattern)) for pattern in list(by_key) if pattern[0] == "^"]
    closed = not required.issuperset({"$ref"})  # a Reference has any other keys, and drops them

    def extra(pair: tuple[str, Any], fragments: Fragments) -> Iterator[tuple[int, bytes]]:
        found = False
        for pattern, number, write in patterns:
            if pattern.search(pair[0]):
                found = True
                yield number, write(pair, fragments)
        if closed and not found:
            raise _RefusedError(f"it has no field for {pair[0][:80]!r}")

    def write(value: Any, fragments: Fragments) -> bytes:
        parts: list[tuple[int, bytes]] = []
        if type(value) is not dict:
            value = dict(_pairs(value))
        if not required <= value.keys():
            raise _RefusedError(f"required {', '.join(sorted(required - value.keys()))} missing")
        for name, item in value.items():
            field = by_key.get(name)
            if field is None:
                parts.extend(extra((name, item), fragments))
                continue
            try:
                parts.append((field[0], field[1](item, fragments)))
            except _RefusedError as refused:
                refused.path.append(name)
                raise
        parts.sort(key=_number)
        return b"".join([part for _, part in parts])

    return write


def _number(part: tuple[int, bytes]) -> int:
    return part[0]


def _pairs(value: Any) -> Iterable[tuple[str, Any]]:
    """The entries of what should be an object; gnostic reads a scalar as an empty one."""
    if type(value) is dict:
        return value.items()
    if type(value) is list and value:
        raise _RefusedError("an array where an object belongs")
    return ()


def _shared(kind: str, write: Write) -> Write:
    def write_once(value: Any, fragments: Fragments) -> bytes:
        return fragments.get((PROTOBUF, kind), value, lambda: write(value, fragments))

    return write_once


def _message_field(prefix: bytes, body: Write) -> Write:
    def write(value: Any, fragments: Fragments) -> bytes:
        return prefixed(prefix, body(value, fragments))

    return write


def _repeated_field(prefix: bytes, body: Write) -> Write:
    def write(value: Any, fragments: Fragments) -> bytes:
        # gnostic skips what is not a list here, where it refuses it for a list of strings.
        items = value if type(value) is list else ()
        return b"".join([prefixed(prefix, body(item, fragments)) for item in items])

    return write


def _string_field(prefix: bytes) -> Write:
    def write(value: Any, _: Fragments) -> bytes:
        text = value if type(value) is str else _text(value)
        if text is None:
            raise _RefusedError(f"a string is wanted, not {_kind(value)}")
        return prefixed(prefix, _utf8(text)) if text else b""

    return write


def _lax_string_field(prefix: bytes) -> Write:
    def write(value: Any, _: Fragments) -> bytes:
        text = _text(value)
        return prefixed(prefix, _utf8(text)) if text else b""

    return write


def _strings_field(prefix: bytes) -> Write:
    def write(value: Any, _: Fragments) -> bytes:
        if type(value) is not list:
            raise _RefusedError(f"an array is wanted, not {_kind(value)}")
        texts = [_text(item) for item in value]
        return b"".join([prefixed(prefix, _utf8(text)) for text in texts if text is not None])

    return write


def _bool_field(prefix: bytes) -> Write:
    def write(value: Any, _: Fragments) -> bytes:
        if type(value) is not bool:
            raise _RefusedError(f"a boolean is wanted, not {_kind(value)}")
        return prefix + b"\1" if value else b""

    return write


def _int_field(prefix: bytes) -> Write:
    def write(value: Any, _: Fragments) -> bytes:
        if type(value) is not int or not _is_int64(value):
            raise _RefusedError(f"a 64-bit integer is wanted, not {_kind(value)}")
        return prefix + varint(value) if value else b""

    return write


def _double_field(prefix: bytes) -> Write:
    def write(value: Any, _: Fragments) -> bytes:
        if type(value) is not int and type(value) is not float:
            raise _RefusedError(f"a number is wanted, not {_kind(value)}")
        body = _double(value)
        return prefix + body if body != _ZERO else b""

    return write


def _double(value: float) -> bytes:
    return struct.pack("<d", value)


_ZERO: Final = _double(0.0)


def _write_any(value: Any, _: Fragments) -> bytes:
    try:
        return prefixed(_VALUE, _utf8(write_yaml(value)))
    except TypeError as error:
        raise _RefusedError(str(error)) from error


def _write_default(value: Any, _: Fragments) -> bytes:
    """DefaultType: what is no scalar leaves it empty, as gnostic does."""
    match value:
        case bool():
            return key(2, VARINT) + (b"\1" if value else b"\0")
        case int():
            return key(1, FIXED64) + _double(value if _is_int64(value) else 0)
        case float():
            return key(1, FIXED64) + _double(value)
        case str():
            return prefixed(key(3, LENGTH), _utf8(value))
    return b""


def _write_string_array(value: Any, _: Fragments) -> bytes:
    items = value if type(value) is list else [part for pair in _pairs(value) for part in pair]
    return b"".join([prefixed(_NAME, _utf8(_text(item) or "")) for item in items])


def _text(value: Any) -> str | None:
    """A scalar that gnostic takes for a string: text, null and whole numbers."""
    if type(value) is str:
        return value
    if value is None:
        return ""
    return str(value) if type(value) is int else None


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise _RefusedError("text with a lone surrogate") from error


def _is_int64(value: int) -> bool:
    return -INT64_MAX - 1 <= value <= INT64_MAX


def _kind(value: Any) -> str:
    return "null" if value is None else type(value).__name__
