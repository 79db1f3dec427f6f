"""An independent reader of gnostic's messages: the protobuf library, over descriptors made of the facts."""

from __future__ import annotations

from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from specmux_converters.codecs.gnostic import MessageField, Messages, messages_of

_SCALARS = {"double": 1, "int64": 3, "bool": 8, "string": 9}
_MESSAGE = 11


@pytest.fixture(scope="session")
def document_v3() -> Any:
    """The class of openapi.v3.Document; the field with number 1 is called f1."""
    return _document_class("v3", messages_of("v3"))


@pytest.fixture(scope="session")
def document_v2() -> Any:
    return _document_class("v2", messages_of("v2"))


def _document_class(package: str, messages: Messages) -> Any:
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto3")
    builder = _FileBuilder(file)
    for name, fields in messages.items():
        builder.add_message(name, fields)
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.Document"))


class _FileBuilder:
    def __init__(self, file: descriptor_pb2.FileDescriptorProto) -> None:
        self.file = file
        self.names: set[str] = set()

    def add_message(self, name: str, fields: tuple[MessageField, ...]) -> None:
        message = self._message(name)
        one_of = len(fields) > 1 and fields[0].is_keyless
        if one_of:
            message.oneof_decl.add(name="oneof")
        for field in fields:
            kind = field.type.strip("[]")
            kind = self._entry(kind[1:-1]) if field.is_pattern else self._type(kind)
            repeated = field.is_pattern or field.type.startswith("[")
            self._field(message, field.number, kind, repeated=repeated, one_of=one_of)

    def _type(self, kind: str) -> str:
        """The name of a type of the facts; messages that the facts only imply are made here."""
        if kind.startswith("{"):
            name = self._entry(kind[1:-1]).replace("Named", "List")
            if name not in self.names:
                self._field(self._message(name), 1, self._entry(kind[1:-1]), repeated=True)
            return name
        if kind.startswith("@"):
            name = f"{kind[1:]}OrReference"
            if name not in self.names:
                message = self._message(name)
                message.oneof_decl.add(name="oneof")
                self._field(message, 1, kind[1:], one_of=True)
                self._field(message, 2, "Reference", one_of=True)
            return name
        return kind

    def _entry(self, kind: str) -> str:
        value = self._type(kind)
        name = f"Named_{value}"
        if name not in self.names:
            message = self._message(name)
            self._field(message, 1, "string")
            self._field(message, 2, value)
        return name

    def _message(self, name: str) -> descriptor_pb2.DescriptorProto:
        self.names.add(name)
        return self.file.message_type.add(name=name)

    def _field(
        self,
        message: descriptor_pb2.DescriptorProto,
        number: int,
        kind: str,
        *,
        repeated: bool = False,
        one_of: bool = False,
    ) -> None:
        field = message.field.add(name=f"f{number}", number=number, label=3 if repeated else 1)
        field.type = _SCALARS.get(kind, _MESSAGE)  # type: ignore[assignment]
        if kind not in _SCALARS:
            field.type_name = f".{self.file.package}.{kind}"
        if one_of:
            field.oneof_index = 0
