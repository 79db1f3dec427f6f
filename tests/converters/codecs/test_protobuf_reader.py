from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from converters.codecs import go_reference
from shared_data import GOLDEN, files, load, native_files, read
from specmux_converters.codecs import protobuf_v2, protobuf_v3
from specmux_converters.document import Limits
from specmux_converters.errors import ConverterError, InvalidDocument, LimitExceeded, Unrepresentable

LIMITS = Limits()
ZEROS = (False, 0, 0.0, "")
DOCUMENT: dict[str, Any] = {
    "openapi": "3.0.0",
    "info": {"title": "t", "version": ""},
    "paths": {
        "/a": {
            "parameters": [
                {"name": "p", "in": "query", "schema": {"type": "string", "enum": ["on", "1", 1]}}
            ],
            "get": {
                "operationId": "get",
                "responses": {"200": {"description": "", "content": {"a/b": {"schema": {"$ref": "#/c"}}}}},
                "x-kubernetes-group-version-kind": {"group": "", "kind": "A", "version": "v1"},
            },
        }
    },
    "components": {
        "schemas": {
            "A": {
                "type": "object",
                "properties": {"a": {"type": "integer", "minimum": 1, "maxLength": 3, "default": 5}, "": {}},
                "additionalProperties": False,
                "default": "a",
                "items": {"allOf": [{"$ref": "#/c", "description": "d"}]},
                "multipleOf": 0.5,
                "maximum": -1e300,
                "minItems": -(2**63),
                "x-list": [{"a": None}, 2**63],
            }
        },
        "securitySchemes": {"S": {"type": "oauth2", "flows": {"implicit": {"scopes": {"a": "", "b": "c"}}}}},
    },
    "security": [{"S": ["a", ""]}, {}],
    "tags": [{"name": ""}],
}


def test_a_document_comes_back_when_protobuf_carries_all_of_it() -> None:
    assert protobuf_v3.decode(protobuf_v3.encode(DOCUMENT), limits=LIMITS) == DOCUMENT


def differences(before: Any, after: Any, pointer: str = "") -> Iterator[str]:
    """Where ``after`` says something else than ``before``, beyond what Protobuf cannot say."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before.keys() | after.keys():
            if key not in after:
                if before[key] in ZEROS or ("$ref" in before and key not in ("summary", "description")):
                    continue
                yield f"{pointer}/{key} is lost"
            elif key not in before:
                yield f"{pointer}/{key} is new"
            elif key == "default" and after[key] is None and isinstance(before[key], dict | list | None):
                continue
            else:
                yield from differences(before[key], after[key], f"{pointer}/{key}")
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, pair in enumerate(zip(before, after, strict=True)):
            yield from differences(*pair, f"{pointer}/{index}")
    elif before != after or isinstance(before, bool) != isinstance(after, bool):
        yield f"{pointer}: {before!r} is now {after!r}"


@pytest.mark.parametrize("path", native_files())
def test_a_real_document_comes_back_when_it_was_written(path: Path) -> None:
    document = load(path)
    data = protobuf_v3.encode(document)
    back = protobuf_v3.decode(data, limits=LIMITS)
    assert list(differences(document, back)) == []
    assert protobuf_v3.encode(back) == data


def test_a_lost_or_changed_value_is_noticed_when_documents_are_compared() -> None:
    for change in ({"maxLength": 4}, {"pattern": "x"}, {"minimum": True}, {"enum": [1]}):
        schema = DOCUMENT["components"]["schemas"]["A"]
        other = DOCUMENT | {"components": {"schemas": {"A": schema | change}}}
        assert list(differences(other, DOCUMENT))


@pytest.mark.parametrize("path", files(GOLDEN / "protobuf", "**/*.pb*"))
def test_bytes_of_go_are_read_when_recorded(path: Path) -> None:
    document = load(path.with_name(path.name.replace(".pb", ".json")))
    assert list(differences(document, protobuf_v3.decode(read(path), limits=LIMITS))) == []


def test_every_field_comes_back_when_its_value_is_representable() -> None:
    """All fields with all values that the Go reference takes: what was read is written as the same bytes."""
    same = 0
    for message, field in go_reference.fields():
        for value in go_reference.VALUES:
            try:
                data = protobuf_v3.encode(go_reference.document(message, field, value))
            except Unrepresentable:
                continue
            again = protobuf_v3.encode(protobuf_v3.decode(data, limits=LIMITS))
            assert again == data, (message, field.key, value)
            same += 1
    assert same > 2000


def test_a_document_of_any_fields_is_written_as_the_same_bytes_when_it_is_read_back() -> None:
    same = unreadable = 0
    for number in range(1000):
        try:
            data = protobuf_v3.encode(go_reference.random_document(number))
        except Unrepresentable:
            continue
        if b"- |4" in data:
            # A literal in a sequence has the hint 4 where go-yaml indents it by 2: not even Go can read it.
            unreadable += 1
            continue
        assert protobuf_v3.encode(protobuf_v3.decode(data, limits=LIMITS)) == data, number
        same += 1
    assert same > 900
    assert unreadable < 20


@pytest.mark.parametrize("value", [-0.0, 2**53, 2.0**53, -(2**63), 2**63, 2**63 - 1, 2.0**64 - 2**11, 1e300])
def test_a_double_is_written_as_the_same_bytes_when_it_is_read_back(value: float) -> None:
    info = {"title": "t", "version": "1"}
    for key in ("minimum", "default"):
        schemas = {"A": {key: value}}
        data = protobuf_v3.encode(
            {"openapi": "3.0.0", "info": info, "paths": {}, "components": {"schemas": schemas}}
        )
        assert protobuf_v3.encode(protobuf_v3.decode(data, limits=LIMITS)) == data


def field(number: int, body: bytes) -> bytes:
    return bytes([number << 3 | 2, len(body)]) + body


INFO = field(1, b"3.0.0") + field(2, field(1, b"t"))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"\x0a", id="no length"),
        pytest.param(b"\x0a\x05abc", id="cut short"),
        pytest.param(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", id="length of 2^64"),
        pytest.param(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", id="varint without an end"),
        pytest.param(b"\x0a\x02\xff\xfe", id="invalid UTF-8"),
        pytest.param(b"\x0b", id="group"),
        pytest.param(b"\xf8\x07" + b"\xff" * 9 + b"\x02", id="varint beyond 64 bits"),
        pytest.param(b"\x02\x00", id="field zero"),
        pytest.param(b"\x0f\x00", id="wire type 7"),
        pytest.param(b"\x80\x80\x80\x80\x10\x00", id="field 2^29"),
        pytest.param(INFO + field(9, field(1, b"x-a") + field(2, field(2, b"*a"))), id="alias"),
        pytest.param(INFO + field(9, field(1, b"x-a")) * 2, id="two entries with one name"),
        pytest.param(
            INFO + field(9, field(1, b"info") + field(2, field(2, b"evil"))), id="entry with a field's name"
        ),
        pytest.param(
            field(1, b"3.0.0") + field(2, field(7, field(1, b"title") + field(2, field(2, b"e")))),
            id="entry with the name of a field that is not there",
        ),
        pytest.param(
            INFO + field(9, field(1, b"x-a") + field(2, field(2, b"a: [")))[:-1], id="YAML cut short"
        ),
        pytest.param(
            field(5, field(1, field(1, field(1, b"A") + field(2, field(1, b"\x59\0"))))), id="no double"
        ),
        pytest.param(
            field(5, field(1, field(1, field(2, field(1, b"\x59" + b"\xff" * 8))))), id="a double that is NaN"
        ),
    ],
)
def test_bytes_are_refused_when_they_are_no_such_message(data: bytes) -> None:
    with pytest.raises(InvalidDocument):
        protobuf_v3.decode(data, limits=LIMITS)


def test_fields_are_passed_over_when_they_are_unknown() -> None:
    unknown = b"\xf8\x07\x01" + b"\xf9\x07" + b"8bytes__" + b"\xfd\x07" + b"four" + b"\xfa\x07\x03abc"
    assert protobuf_v3.decode(unknown + INFO + unknown, limits=LIMITS) == {
        "openapi": "3.0.0",
        "info": {"title": "t", "version": ""},
    }


def schemas(entry: bytes) -> bytes:
    return INFO + field(5, field(1, field(1, field(1, b"A") + entry)))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(field(1, b"3.0.0") + field(2, b"") + field(2, field(1, b"t")), id="of an object"),
        pytest.param(schemas(field(2, field(1, b"") * 2)), id="of a oneof"),
        pytest.param(schemas(field(2, field(1, b"")) * 2), id="of an entry"),
    ],
)
def test_a_message_is_refused_when_it_comes_in_pieces(data: bytes) -> None:
    """Protobuf would have a reader merge them."""
    with pytest.raises(InvalidDocument, match="in pieces"):
        protobuf_v3.decode(data, limits=LIMITS)


def test_the_last_counts_when_a_scalar_or_another_member_of_a_oneof_comes_again() -> None:
    schema, reference = field(1, field(9, b"title")), field(2, field(1, b"#/a"))
    document = protobuf_v3.decode(field(1, b"3.1.0") + schemas(field(2, schema + reference)), limits=LIMITS)
    assert document["openapi"] == "3.0.0"
    assert document["components"] == {"schemas": {"A": {"$ref": "#/a"}}}


def nested(levels: int) -> bytes:
    body = b""
    for _ in range(levels):
        body = b"\xea\x01" + _length(len(body)) + body  # not
    for number in (1, 2, 1, 1, 5):
        body = bytes([number << 3 | 2]) + _length(len(body)) + body
    return body


def _length(size: int) -> bytes:
    out = bytearray()
    while size > 0x7F:
        out.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes([*out, size])


def test_nesting_is_refused_when_it_is_beyond_the_limits() -> None:
    assert protobuf_v3.decode(nested(150), limits=LIMITS)["components"]
    for levels in (LIMITS.max_depth + 1, 20_000):
        with pytest.raises(LimitExceeded):
            protobuf_v3.decode(nested(levels), limits=LIMITS)


def test_extensions_are_refused_when_they_are_nested_beyond_the_limits() -> None:
    """The same text is met first where it still fits."""
    value: Any = "a"
    for _ in range(LIMITS.max_depth - 4):
        value = [value]
    shallow = {"x-a": value}
    deep = {"components": {"schemas": {"A": {"properties": {"b": {"x-a": value}}}}}}
    data = protobuf_v3.encode(DOCUMENT | shallow)
    assert protobuf_v3.decode(data, limits=LIMITS)["x-a"] == value
    with pytest.raises(LimitExceeded):
        protobuf_v3.decode(protobuf_v3.encode(DOCUMENT | shallow | deep), limits=LIMITS)


def test_bytes_are_refused_when_there_are_too_many() -> None:
    with pytest.raises(LimitExceeded):
        protobuf_v3.decode(INFO, limits=Limits(max_bytes=5))


@given(st.binary(max_size=80))
def test_only_the_packages_errors_come_out_when_bytes_are_arbitrary(data: bytes) -> None:
    for decode in (protobuf_v3.decode, protobuf_v2.decode):
        with contextlib.suppress(ConverterError):
            decode(data, limits=LIMITS)


def test_only_the_packages_errors_come_out_when_bytes_are_changed() -> None:
    original = protobuf_v3.encode(DOCUMENT)
    source = random.Random(3)
    refused = 0
    for _ in range(3000):
        data = bytearray(original)
        for _ in range(source.randint(1, 4)):
            place = source.randrange(len(data))
            match source.randrange(3):
                case 0:
                    data[place] = source.randrange(256)
                case 1:
                    del data[place : place + source.randint(1, 8)]
                case _:
                    data[place:place] = source.randbytes(source.randint(1, 8))
        try:
            protobuf_v3.decode(bytes(data), limits=LIMITS)
        except ConverterError:
            refused += 1
    assert refused > 1000
