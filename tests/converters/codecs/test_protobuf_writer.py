from __future__ import annotations

import math
import struct
from typing import Any

import orjson
import pytest

from converters.codecs import go_reference
from converters.codecs.go_reference import VALUES, digest, document
from shared_data import NATIVE, documents, load
from specmux_converters.codecs import Fragments
from specmux_converters.codecs.gnostic import MessageField
from specmux_converters.codecs.protobuf_v3 import encode
from specmux_converters.errors import ConverterError, Unrepresentable

ANSWERS = {line.split()[0]: line.split()[1:] for line in go_reference.RECORD.read_text().splitlines()}


def with_schema(schema: Any) -> dict[str, Any]:
    info = {"title": "t", "version": "1"}
    return {"openapi": "3.0.0", "info": info, "paths": {}, "components": {"schemas": {"A": schema}}}


def ours(value: dict[str, Any], fragments: Fragments | None = None) -> bytes | None:
    try:
        return encode(value, fragments=fragments)
    except ConverterError:
        return None


@pytest.mark.parametrize(
    ("message", "field"), [pytest.param(m, f, id=f"{m}.{f.key}") for m, f in go_reference.fields()]
)
def test_a_field_is_written_or_refused_as_go_does_when_it_has_any_value(
    message: str, field: MessageField
) -> None:
    got = [digest(ours(document(message, field, value))) for value in VALUES]
    assert got == ANSWERS[f"{message}.{field.key}"]


def test_the_recorded_answers_cover_each_field_when_the_facts_change() -> None:
    assert set(ANSWERS) == {f"{message}.{field.key}" for message, field in go_reference.fields()}
    assert sum(map(len, ANSWERS.values())) > 4000
    assert sum(answer == "-" for row in ANSWERS.values() for answer in row) > 1000


def test_a_document_of_any_fields_is_written_or_refused_as_go_does() -> None:
    answers = go_reference.DOCUMENTS_RECORD.read_text().split()
    fragments = Fragments()
    for number, answer in enumerate(answers):
        document = go_reference.random_document(number)
        assert digest(ours(document)) == answer, number
        assert digest(ours(document, fragments)) == answer, number
    assert len(answers) == 1000
    assert answers.count("-") < 100


@pytest.mark.parametrize("release", NATIVE)
def test_bytes_are_what_protobuf_itself_would_write_when_they_are_read(
    release: str, document_v3: Any
) -> None:
    fragments = Fragments()
    paths = documents(release).values()
    assert paths
    for path in paths:
        data = encode(load(path), fragments=fragments)
        assert document_v3.FromString(data).SerializeToString(deterministic=True) == data, path


@pytest.mark.parametrize(
    ("default", "wire"),
    [
        (True, b"\x10\x01"),
        (False, b"\x10\x00"),
        ("", b"\x1a\x00"),
        ("a", b"\x1a\x01a"),
        (0, b"\x09" + struct.pack("<d", 0)),
        (2**63, b"\x09" + struct.pack("<d", 0)),
        (-2.5, b"\x09" + struct.pack("<d", -2.5)),
        ({}, b""),
        ([1], b""),
        (None, b""),
    ],
)
def test_default_is_one_scalar_or_empty_when_written(default: Any, wire: bytes) -> None:
    field = b"\x8a\x02" + bytes([len(wire)]) + wire
    assert field in encode(with_schema({"default": default}))


def test_zero_values_vanish_when_the_field_is_no_oneof() -> None:
    zeros = {"minimum": 0, "maximum": 0.0, "maxLength": 0, "nullable": False, "title": "", "pattern": None}
    assert encode(with_schema(zeros)) == encode(with_schema({}))


def test_negative_zero_stays_when_it_is_a_float() -> None:
    assert struct.pack("<d", -0.0) in encode(with_schema({"minimum": -0.0}))
    assert math.copysign(1, -0.0) == -1


@pytest.mark.parametrize(
    ("schema", "pointer"),
    [
        ({"contentEncoding": "base64"}, "/components/schemas/A"),
        ({"type": ["string", "null"]}, "/components/schemas/A/type"),
        ({"properties": ["x"]}, "/components/schemas/A/properties"),
        ({"properties": {"a/b": {"maxLength": "1"}}}, "/components/schemas/A/properties/a~1b/maxLength"),
        ({"maxItems": 2**63}, "/components/schemas/A/maxItems"),
        ({"allOf": [{"required": "a"}]}, "/components/schemas/A/allOf/required"),
        ({"x-a": float("nan")}, "/components/schemas/A/x-a"),
        ({"description": "\ud800"}, "/components/schemas/A/description"),
        ({"minimum": float("inf")}, "/components/schemas/A/minimum"),
        ({"minimum": 10**400}, "/components/schemas/A/minimum"),
        ({"title": 10**5000}, "/components/schemas/A/title"),
        ({"enum": [10**5000]}, "/components/schemas/A/enum"),
        ({"example": b"a"}, "/components/schemas/A/example"),
    ],
)
def test_a_document_is_refused_with_its_place_when_protobuf_has_no_form(schema: Any, pointer: str) -> None:
    with pytest.raises(Unrepresentable) as refused:
        encode(with_schema(schema))
    assert refused.value.pointer == pointer


@pytest.mark.parametrize("key", [1, None, b"a", ("a",)])
def test_a_document_is_refused_when_a_key_is_not_text(key: Any) -> None:
    for value in ({key: 1}, {"properties": {key: {}}}, {"x-a": {key: 1}}):
        with pytest.raises(Unrepresentable):
            encode(with_schema(value))


def test_a_request_body_is_refused_when_it_is_empty() -> None:
    operation = {"requestBody": {}, "responses": {}}
    broken = with_schema({}) | {"paths": {"/a": {"post": operation}}}
    with pytest.raises(Unrepresentable, match="content required") as refused:
        encode(broken)
    assert refused.value.pointer == "/paths/~1a/post/requestBody"


def test_a_callback_has_a_path_of_that_name_when_its_ref_is_no_reference() -> None:
    broken = with_schema({})
    broken["components"]["callbacks"] = {"C": {"$ref": {}}}
    assert b"\x0a\x08\x0a\x04$ref\x12\x00" in encode(broken)


def nested(keyword: str, levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {keyword: {"a": schema} if keyword == "properties" else schema}
    return with_schema(schema)


@pytest.mark.parametrize(("keyword", "levels"), [("properties", 95), ("items", 190)])
def test_nesting_is_written_when_it_is_within_the_limits_of_a_document(keyword: str, levels: int) -> None:
    assert len(encode(nested(keyword, levels))) > levels


@pytest.mark.parametrize("keyword", ["properties", "items", "not"])
def test_nesting_is_refused_when_it_is_beyond_all_bounds(keyword: str) -> None:
    with pytest.raises(Unrepresentable):
        encode(nested(keyword, 50_000))


def test_the_same_value_differs_when_its_field_has_another_number() -> None:
    """An operation's parameters and its path's are equal here, and shared parts go by content."""
    parameters = [{"name": "a", "in": "query"}]
    operation = {"parameters": parameters, "responses": {}}
    both = with_schema({}) | {"paths": {"/a": {"parameters": parameters, "get": operation}}}
    fragments = Fragments()
    assert encode(both, fragments=fragments) == encode(both, fragments=fragments)
    assert b"\x6a\x0c\x0a\x0a\x0a\x01a\x12\x05query" in encode(both, fragments=fragments)
    assert b"\x32\x0c\x0a\x0a\x0a\x01a\x12\x05query" in encode(both, fragments=fragments)


def test_key_order_of_objects_does_not_count_when_fields_have_numbers() -> None:
    one, other = {"type": "string", "format": "date"}, {"format": "date", "type": "string"}
    assert encode(with_schema(one)) == encode(with_schema(other))
    ab, ba = {"properties": {"a": {}, "b": {}}}, {"properties": {"b": {}, "a": {}}}
    assert encode(with_schema(ab)) != encode(with_schema(ba))


def test_the_document_is_as_it_was_when_it_has_been_written() -> None:
    value = nested("properties", 3)
    before = orjson.dumps(value)
    encode(value)
    assert orjson.dumps(value) == before
