"""gnostic's messages for users of the protobuf library: ``openapi.v2`` and ``openapi.v3``, built from our own
field tables, with gnostic's names.

The library is imported when a message is first used. It accepts at most ``DEPTH_MAX`` nested messages, and
one level of a schema takes four, so documents are read and written without it.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from specmux_converters.codecs import protobuf_v2, protobuf_v3
from specmux_converters.codecs.gnostic import MessageField, messages_of
from specmux_converters.document import DEFAULT_LIMITS, Document, Limits
from specmux_converters.errors import InvalidDocument, LimitExceeded, Unrepresentable

if TYPE_CHECKING:  # protobuf is imported when a message is asked for
    from google.protobuf.descriptor_pb2 import DescriptorProto, FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message import Message

Package: TypeAlias = Literal["openapi.v2", "openapi.v3"]

DEPTH_MAX: Final = 100
"""Nested messages that the protobuf library reads, about 25 levels of a schema."""

_SCALARS: Final = {"double": 1, "int64": 3, "bool": 8, "string": 9}
_MESSAGE: Final = 11
_REPEATED: Final = 3
_OPTIONAL: Final = 1

_LISTS: Final[Mapping[str, Mapping[str, str]]] = {
    "openapi.v2": {
        "parameters": "ParameterDefinitions",
        "responses": "ResponseDefinitions",
        "scopes": "Oauth2Scopes",
        "security": "SecurityRequirement",
    },
    "openapi.v3": {
        "content": "MediaTypes",
        "encoding": "Encodings",
        "mapping": "Strings",
        "properties": "Properties",
        "scopes": "Strings",
        "security": "SecurityRequirement",
        "variables": "ServerVariables",
    },
}
"""gnostic's name for the named list under a key, where it differs from the key."""

_PATTERNS: Final = {
    ("openapi.v2", "^x-"): "vendor_extension",
    ("openapi.v2", "^([0-9]{3}|default)$"): "response_code",
    ("openapi.v3", "^x-"): "specification_extension",
    ("openapi.v3", "^[0-9X]{3}$"): "response_or_reference",
}
"""gnostic's name for the field of all matching keys; ``path`` otherwise."""


def to_message(document: Document) -> Message:
    """Converts an OpenAPI v3 document to ``openapi.v3.Document``, with the losses of that encoding.

    Raises Unrepresentable as ``protobuf_v3.encode``, LimitExceeded if the document is too deep for the
    library.
    """
    if "swagger" in document:
        raise Unrepresentable("Swagger 2.0 is read from Protobuf and never written; convert it to OpenAPI v3")
    return parse_message(protobuf_v3.encode(document), "openapi.v3")


def from_message(message: Message, *, limits: Limits = DEFAULT_LIMITS) -> Document:
    """The document of an ``openapi.v3.Document`` or ``openapi.v2.Document``, from whichever generated class.

    Raises InvalidDocument for another message, LimitExceeded past ``limits``.
    """
    data = message.SerializeToString(deterministic=True)
    match message.DESCRIPTOR.full_name:
        case "openapi.v3.Document":
            return protobuf_v3.decode(data, limits=limits)
        case "openapi.v2.Document":
            return protobuf_v2.decode(data, limits=limits)
        case other:
            raise InvalidDocument(f"a message {other}, where an openapi.v3.Document is wanted")


def parse_message(data: bytes, package: Package) -> Message:
    """Parses the bytes of a Document with the library. Raises InvalidDocument and LimitExceeded."""
    from google.protobuf.message import DecodeError

    message = message_class(f"{package}.Document")()
    try:
        message.ParseFromString(data)
    except DecodeError as error:
        decode = protobuf_v3.decode if package == "openapi.v3" else protobuf_v2.decode
        decode(data, limits=DEFAULT_LIMITS)  # raises a precise error, unless only the depth is at fault
        raise LimitExceeded(
            f"more than {DEPTH_MAX} messages in each other (about {DEPTH_MAX // 4} levels of a schema), "
            "which the protobuf library does not read; specmux_converters.codecs.decode does"
        ) from error
    return message


def verify(data: bytes) -> None:
    """Raises InvalidDocument unless both the library and our codec reproduce these bytes of an OpenAPI v3
    document; LimitExceeded as ``parse_message``."""
    message = parse_message(data, "openapi.v3")
    if message.SerializeToString(deterministic=True) != data:
        raise InvalidDocument("the protobuf library writes other bytes than it has read")
    if protobuf_v3.encode(from_message(message)) != data:
        raise InvalidDocument("what was written reads back as another document")


def message_class(name: str) -> type[Message]:
    """The class of a message by its full name, such as ``openapi.v3.Schema``. KeyError for an unknown one."""
    from google.protobuf.message_factory import GetMessageClass

    return GetMessageClass(descriptor_pool().FindMessageTypeByName(name))


@functools.cache
def descriptor_pool() -> DescriptorPool:
    """A private pool with both packages: gnostic's generated modules may be imported beside it."""
    from google.protobuf.descriptor_pb2 import FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool

    pool = DescriptorPool()
    for version in ("v2", "v3"):
        package = f"openapi.{version}"
        path = f"openapi{version}/OpenAPI{version}.proto"
        file = FileDescriptorProto(name=path, package=package, syntax="proto3")
        builder = _FileBuilder(file)
        for name, fields in messages_of(version).items():
            builder.add_message(name, fields)
        pool.Add(file)
    return pool


class _FileBuilder:
    """Adds the messages of one table to a file, with the messages that they imply."""

    def __init__(self, file: FileDescriptorProto) -> None:
        self._file = file
        self._names: set[str] = set()

    def add_message(self, name: str, fields: tuple[MessageField, ...]) -> None:
        message = self._message(name)
        is_one_of = len(fields) > 1 and fields[0].is_keyless
        if is_one_of:
            message.oneof_decl.add(name="oneof")
        for field in fields:
            is_list = field.is_pattern or field.type.startswith("[")
            kind = field.type.strip("[]")
            kind = self._entry(kind[1:-1]) if field.is_pattern else self._type(kind, field.key)
            name = self._field_name(field)
            self._add_field(message, name, field.number, kind, is_list=is_list, is_one_of=is_one_of)

    def _field_name(self, field: MessageField) -> str:
        if field.is_pattern:
            return _PATTERNS.get((self._file.package, field.key), "path")
        return _snake(field.key.removeprefix("=").replace("$", "_"))

    def _type(self, kind: str, key: str) -> str:
        if kind.startswith("{"):
            return self._list(kind[1:-1], key.removeprefix("="))
        return self._or_reference(kind[1:]) if kind.startswith("@") else kind

    def _list(self, kind: str, key: str) -> str:
        name = _LISTS[self._file.package].get(key) or (
            f"{key[0].upper()}{key[1:]}{'OrReferences' if kind.startswith('@') else ''}"
        )
        if name not in self._names:
            message = self._message(name)
            self._add_field(message, "additional_properties", 1, self._entry(kind), is_list=True)
        return name

    def _or_reference(self, kind: str) -> str:
        name = f"{kind}OrReference"
        if name not in self._names:
            message = self._message(name)
            message.oneof_decl.add(name="oneof")
            self._add_field(message, _snake(kind).strip("_"), 1, kind, is_one_of=True)
            self._add_field(message, "reference", 2, "Reference", is_one_of=True)
        return name

    def _entry(self, kind: str) -> str:
        """The message of a name and a value."""
        value = self._or_reference(kind[1:]) if kind.startswith("@") else kind
        name = f"Named{value[0].upper()}{value[1:]}"
        if name not in self._names:
            message = self._message(name)
            self._add_field(message, "name", 1, "string")
            self._add_field(message, "value", 2, value)
        return name

    def _message(self, name: str) -> DescriptorProto:
        self._names.add(name)
        return self._file.message_type.add(name=name)

    def _add_field(
        self,
        message: DescriptorProto,
        name: str,
        number: int,
        kind: str,
        *,
        is_list: bool = False,
        is_one_of: bool = False,
    ) -> None:
        field: Any = message.field.add(name=name, number=number, label=_REPEATED if is_list else _OPTIONAL)
        field.type = _SCALARS.get(kind, _MESSAGE)
        if kind not in _SCALARS:
            field.type_name = f".{self._file.package}.{kind}"
        if is_one_of:
            field.oneof_index = 0


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name)
