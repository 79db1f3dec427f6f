"""gnostic's messages in the protobuf library's form."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.message import Message

from shared_data import DATA, SHARED, files, load
from specmux_converters.codecs import messages, protobuf_v3
from specmux_converters.document import DEFAULT_LIMITS, canonical
from specmux_converters.errors import InvalidDocument, LimitExceeded, Unrepresentable

DOCUMENT: dict[str, Any] = {
    "openapi": "3.0.0",
    "info": {"title": "t", "version": "v", "termsOfService": "u"},
    "paths": {
        "/a": {"get": {"responses": {"200": {"description": "d"}, "default": {"$ref": "#/components/x"}}}}
    },
    "components": {
        "schemas": {"A": {"type": "object", "properties": {"b": {"$ref": "#/components/schemas/A"}}}}
    },
    "x-extra": {"a": 1},
}


def test_a_document_is_a_message_with_gnostics_names_and_back() -> None:
    message: Any = messages.to_message(DOCUMENT)
    assert isinstance(message, Message)
    assert message.DESCRIPTOR.full_name == "openapi.v3.Document"
    assert message.info.terms_of_service == "u"
    (path,) = message.paths.path
    assert path.name == "/a"
    assert path.value.get.responses.response_or_reference[0].value.response.description == "d"
    schema = message.components.schemas.additional_properties[0]
    assert schema.value.WhichOneof("oneof") == "schema"
    assert schema.value.schema.properties.additional_properties[0].value.reference._ref.endswith("/A")
    assert message.specification_extension[0].value.yaml == "a: 1\n"
    assert messages.from_message(message) == DOCUMENT
    assert message.SerializeToString(deterministic=True) == protobuf_v3.encode(DOCUMENT)


def test_a_message_that_a_user_makes_becomes_a_document() -> None:
    message: Any = messages.message_class("openapi.v3.Document")(openapi="3.0.0")
    message.info.title = "t"
    message.info.version = "1"
    message.paths.SetInParent()
    assert messages.from_message(message)["info"] == {"title": "t", "version": "1"}


def test_swagger_is_read_and_not_written() -> None:
    message: Any = messages.message_class("openapi.v2.Document")(swagger="2.0")
    message.info.title = "t"
    message.info.version = "1"
    message.paths.path.add(name="/a").value.get.responses.response_code.add(name="200")
    assert messages.from_message(message)["swagger"] == "2.0"
    with pytest.raises(Unrepresentable):
        messages.to_message({"swagger": "2.0"})


def test_what_is_no_document_is_refused() -> None:
    with pytest.raises(InvalidDocument, match=r"openapi\.v3\.Info"):
        messages.from_message(messages.message_class("openapi.v3.Info")())
    with pytest.raises(InvalidDocument):
        messages.parse_message(b"\xff\xff", "openapi.v3")
    with pytest.raises(KeyError):
        messages.message_class("openapi.v3.Nothing")


def test_the_librarys_limit_is_named() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(40):
        schema = {"type": "array", "items": schema}
    deep = {**DOCUMENT, "components": {"schemas": {"A": schema}}}
    with pytest.raises(LimitExceeded, match="100 messages"):
        messages.to_message(deep)
    assert protobuf_v3.decode(protobuf_v3.encode(deep), limits=DEFAULT_LIMITS) == deep


def test_the_library_is_imported_when_it_is_used() -> None:
    program = (
        "import sys; from specmux_converters.codecs import messages; print('google.protobuf' in sys.modules)"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout == "False\n"


@pytest.mark.parametrize("version", ["v2", "v3"])
def test_names_types_and_numbers_are_gnostics(version: str) -> None:
    known = load(SHARED / "spec" / f"gnostic_{version}_fields.json")["messages"]
    pool = messages.descriptor_pool()
    compared = 0
    for name, message in known.items():
        if name in _UNUSED:
            continue
        ours = pool.FindMessageTypeByName(f"openapi.{version}.{name}")
        fields = {(field.number, field.name) for field in ours.fields}
        known_fields = [field for field in message["fields"] if field["type"] != "google.protobuf.Any"]
        assert fields == {(field["number"], field["name"]) for field in known_fields}, name
        for field in known_fields:
            found = ours.fields_by_name[field["name"]]
            if found.message_type is not None:
                assert found.message_type.full_name.endswith(field["type"].rpartition(".")[2])
            compared += 1
    assert compared > 150


_UNUSED = ("Object", "SpecificationExtension", "VendorExtension", "Default")
"""Messages that gnostic has, and that no field of a document is of."""


@pytest.mark.parametrize("path", files(DATA / "k8s-pairs/1.35/v3"))
def test_a_native_document_there_and_back(path: Path) -> None:
    document = load(path)
    data = protobuf_v3.encode(document)
    message = messages.to_message(document)
    assert message.SerializeToString(deterministic=True) == data
    assert canonical(messages.from_message(message)) == canonical(
        protobuf_v3.decode(data, limits=DEFAULT_LIMITS)
    )
