"""Writes documents as gnostic's Protobuf, of either version, byte for byte as the Go reference does.

The reference is kube-openapi's ``handler3.ToV3ProtoBinary``: gnostic reads the JSON as YAML nodes, and Go's
protobuf library writes the result by ascending field number. Each message of the field table is compiled once
to a function from a JSON value to the message body.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from operator import itemgetter
from typing import Any, ClassVar

from specmux_converters.codecs import Fragments
from specmux_converters.codecs import protobuf_fields as fields
from specmux_converters.codecs.gnostic import MessageField, Messages
from specmux_converters.codecs.protobuf_fields import NAME, VALUE, RefusedError, Write, message_field, pairs
from specmux_converters.codecs.wire import FIXED64, LENGTH, VARINT, key, write_delimited
from specmux_converters.document import Document
from specmux_converters.errors import Unrepresentable, cut
from specmux_converters.losses import pointer_to
from specmux_converters.media_types import PROTOBUF


def write_message(write: Write, document: Document, fragments: Fragments) -> bytes:
    """Raises Unrepresentable."""
    try:
        return write(document, fragments)
    except RefusedError as refused:
        raise Unrepresentable(
            f"Protobuf: {refused.reason}", pointer=pointer_to(*refused.path[::-1])
        ) from refused
    except TypeError as error:
        raise Unrepresentable("Protobuf: not a tree of JSON values") from error
    except RecursionError as error:
        raise Unrepresentable("Protobuf: nested too deeply") from error


class MessageCompiler:
    """Compiles messages in two passes, since they refer to each other in cycles: writers first, then their
    fields. ``shared`` names the fields whose values are written once."""

    by_hand: ClassVar[frozenset[str]]
    """Messages that are not objects: oneofs and wrappers."""

    def __init__(self, messages: Messages, *, shared: Mapping[tuple[str, str], str]) -> None:
        self.messages = messages
        self.writers: dict[str, Write] = {
            "Any": fields.write_any,
            "DefaultType": fields.write_default,
            "StringArray": fields.write_string_array,
            # gnostic tries Any, then Expression, and keeps the last that fits: Expression always does.
            "AnyOrExpression": message_field(VALUE, _named_list(message_field(VALUE, fields.write_any))),
        }
        by_hand = {*self.writers, *self.by_hand}
        objects = {name: _Object(facts) for name, facts in messages.items() if name not in by_hand}
        self.writers |= {name: message.write for name, message in objects.items()}
        self.add_by_hand()
        for name, message in objects.items():
            for field in messages[name]:
                message.add(field, self._field(field, shared.get((name, field.key))))

    def add_by_hand(self) -> None:
        """Adds the writers of ``by_hand``."""
        raise NotImplementedError

    def _field(self, field: MessageField, shared: str | None) -> Write:
        prefix = key(field.number, LENGTH)
        if field.is_pattern:
            return _entry(prefix, self._entry_value(field.type[1:-1]))
        match field.type:
            case "string":
                return fields.string_field(prefix, field.values)
            case "bool":
                return fields.bool_field(key(field.number, VARINT))
            case "int64":
                return fields.int_field(key(field.number, VARINT))
            case "double":
                return fields.double_field(key(field.number, FIXED64))
            case "[string]":
                return fields.strings_field(prefix, field.values)
        if field.type.startswith("["):
            write = fields.repeated_field(prefix, self._body(field.type[1:-1]))
        elif field.type.startswith("{") and shared:
            return message_field(prefix, _named_list(_once(shared, self._entry_value(field.type[1:-1]))))
        else:
            write = message_field(prefix, self._body(field.type))
        return _once(shared, write) if shared else write

    def _body(self, kind: str) -> Write:
        if kind.startswith("{"):
            return _named_list(self._entry_value(kind[1:-1]))
        return self._or_reference(kind[1:]) if kind.startswith("@") else self.writers[kind]

    def _entry_value(self, kind: str) -> Write:
        return fields.lax_string_field(VALUE) if kind == "string" else message_field(VALUE, self._body(kind))

    def _or_reference(self, message: str) -> Write:
        """The oneof of a message and a Reference: if both fit, gnostic keeps the Reference."""
        write_message, write_reference = self.writers[message], self.writers["Reference"]

        def write(value: Any, fragments: Fragments) -> bytes:
            if type(value) is dict and "$ref" in value:
                try:
                    return write_delimited(VALUE, write_reference(value, fragments))
                except RefusedError:
                    if message != "Callback":  # a Callback may have a path named "$ref"
                        raise
            return write_delimited(NAME, write_message(value, fragments))

        return write


class _Object:
    """A message that represents a JSON object."""

    def __init__(self, facts: tuple[MessageField, ...]) -> None:
        self._required = frozenset(field.key for field in facts if field.required)
        self._by_key: dict[str, tuple[int, Write]] = {}
        self._by_pattern: list[tuple[re.Pattern[str], int, Write]] = []

    def add(self, field: MessageField, write: Write) -> None:
        if field.is_pattern:
            self._by_pattern.append((re.compile(field.key), field.number, write))
        else:
            self._by_key[field.key] = (field.number, write)

    def write(self, value: Any, fragments: Fragments) -> bytes:
        if type(value) is not dict or not self._required <= value.keys():
            return self._write_stray(value, fragments)
        parts: list[tuple[int, bytes]] = []
        for name, item in value.items():
            field = self._by_key.get(name)
            if field is None:
                parts += self._extra(name, item, fragments)
                continue
            try:
                parts.append((field[0], field[1](item, fragments)))
            except RefusedError as refused:
                refused.path.append(name)
                raise
        return _in_order(parts)

    def _extra(self, name: str, item: Any, fragments: Fragments) -> list[tuple[int, bytes]]:
        found = self._matching((name, item), fragments)
        # A message without patterns is a Reference, which drops all other keys.
        if not found and self._by_pattern:
            raise RefusedError(f"it has no field for {cut(name)!r}")
        return found

    def _matching(self, pair: tuple[str, Any], fragments: Fragments) -> list[tuple[int, bytes]]:
        return [
            (number, write(pair, fragments))
            for pattern, number, write in self._by_pattern
            if pattern.search(pair[0])
        ]

    def _write_stray(self, value: Any, fragments: Fragments) -> bytes:
        """Writes a value that is no object, or lacks a required key."""
        if self._required:
            raise RefusedError(f"{', '.join(sorted(self._required))} required")
        return _in_order([part for pair in pairs(value) for part in self._matching(pair, fragments)])


def _in_order(parts: list[tuple[int, bytes]]) -> bytes:
    if len(parts) > 1:
        parts.sort(key=itemgetter(0))
    return b"".join([part for _, part in parts])


def _named_list(value_field: Write) -> Write:
    entry = _entry(NAME, value_field)

    def write(value: Any, fragments: Fragments) -> bytes:
        return b"".join([entry(pair, fragments) for pair in pairs(value)])

    return write


def _entry(prefix: bytes, value_field: Write) -> Write:
    """Writes a (name, value) pair as one field."""
    name_field = fields.string_field(NAME)

    def write(pair: tuple[str, Any], fragments: Fragments) -> bytes:
        name, value = pair
        if type(name) is not str:
            raise TypeError("a key that is no text")
        try:
            return write_delimited(prefix, name_field(name, fragments) + value_field(value, fragments))
        except RefusedError as refused:
            refused.path.append(name)
            raise

    return write


def boolean_or(other: Write) -> Write:
    """additionalProperties: booleans have their own member of the oneof."""
    prefix = key(2, VARINT)

    def write(value: Any, fragments: Fragments) -> bytes:
        if type(value) is bool:
            return prefix + (b"\1" if value else b"\0")
        return other(value, fragments)

    return write


def _once(kind: str, write: Write) -> Write:
    def write_once(value: Any, fragments: Fragments) -> bytes:
        try:
            return fragments.get((PROTOBUF, kind), value, lambda part: write(part, fragments))
        except TypeError:
            return write(value, fragments)

    return write_once
