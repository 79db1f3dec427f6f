"""Whatever comes in, only the package's own error comes out, with a pointer, in bounded time."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampling import examples
from shared_data import DATA, load
from specmux_aggregator.built_in_releases import built_in_releases
from specmux_converters import ConverterError, convert, parse
from specmux_converters.codecs import cbor, protobuf_v3
from specmux_converters.document import Limits
from specmux_converters.errors import InvalidDocument, LimitExceeded
from specmux_converters.from_swagger2.conversion import convert_whole
from specmux_converters.group_versions import GroupVersion
from specmux_converters.recognise import recognise
from specmux_converters.releases import RELEASES
from specmux_converters.to_swagger2.conversion import convert_to_v2

JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)

KEYS = st.sampled_from(
    [
        "$ref",
        "swagger",
        "info",
        "host",
        "basePath",
        "schemes",
        "consumes",
        "produces",
        "paths",
        "definitions",
        "parameters",
        "responses",
        "securityDefinitions",
        "security",
        "tags",
        "externalDocs",
        "x-a",
        "get",
        "post",
        "/a",
        "/a/{b}",
        "/api/v1/x",
        "200",
        "default",
        "schema",
        "examples",
        "headers",
        "description",
        "name",
        "in",
        "type",
        "format",
        "items",
        "collectionFormat",
        "properties",
        "additionalProperties",
        "allOf",
        "enum",
        "required",
        "discriminator",
        "x-nullable",
        "flow",
        "scopes",
        "title",
        "version",
        "operationId",
        "example",
        "xml",
        "url",
    ]
)
WORDS = st.sampled_from(
    [
        "2.0",
        "#/definitions/A",
        "#/definitions/B",
        "#/parameters/A",
        "#/responses/A",
        "#",
        "#/",
        "#/paths/~1a/get",
        "x.json#/a",
        "query",
        "path",
        "header",
        "body",
        "formData",
        "string",
        "array",
        "object",
        "file",
        "null",
        "csv",
        "multi",
        "tsv",
        "basic",
        "oauth2",
        "apiKey",
        "implicit",
        "a/a",
        "https",
        "/b",
        "b",
        "A",
        "",
    ]
)
NODES = st.recursive(
    WORDS | JSON_VALUES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(KEYS | st.sampled_from(["A", "B"]), inner, max_size=6)
    ),
    max_leaves=25,
)


def outcome(document: Any) -> str:
    """Converts in every way."""
    for profile in ("kubernetes", "oas"):
        try:
            once = convert(document, profile=profile)  # type: ignore[arg-type]
            again = convert(document, profile=profile)  # type: ignore[arg-type]
            assert dict(once.documents) == dict(again.documents)
            assert once.losses == again.losses
            convert_whole(document, profile=profile)  # type: ignore[arg-type]
        except ConverterError as error:
            assert error.pointer == "" or error.pointer.startswith("/")
            return "refused"
    return "converted"


@examples(120)
@given(st.dictionaries(KEYS, NODES, max_size=8))
def test_any_tree_is_converted_or_refused(document: Any) -> None:
    outcome({"swagger": "2.0", **document})


@examples(120)
@given(
    st.dictionaries(st.sampled_from(["A", "B"]), NODES),
    st.dictionaries(KEYS, NODES),
    st.lists(NODES, max_size=3),
)
def test_any_parts_are_converted_or_refused(definitions: Any, operation: Any, parameters: Any) -> None:
    paths = {"/api/v1/{b}": {"get": {"responses": {}, **operation, "parameters": parameters}}}
    outcome({"swagger": "2.0", "definitions": definitions, "parameters": definitions, "paths": paths})


@examples(120)
@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode) | JSON_VALUES.map(orjson.dumps))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for read in (parse, recognise):
        try:
            read(data)  # type: ignore[operator]
        except ConverterError as error:
            assert len(str(error)) < 2000


OTHERS = [
    "k8s-v2-aggregator-1.14/openapi-2.json.gz",
    "kube-openapi-vectors/openapiconv/v2_batch.v1.json.gz",
    "v2-other/oai-examples/json/petstore-expanded.json",
    "v2-other/go-swagger/codegen/swagger-codegen-tests.json",
    "v2-other/docusign/monitor.rest.swagger-v2.0.json",
]
OWN = [
    "apis/batch/v1",
    "apis/policy/v1",
    "apis/node.k8s.io/v1",
    "apis/events.k8s.io/v1",
    "apis/scheduling.k8s.io/v1",
]
SMALL_DOCUMENTS = OTHERS if all((DATA / each).exists() for each in OTHERS) else OWN
"""Of others, else made of built-in documents."""
VALUES: list[Any] = [
    None, True, 0, -1, 1.5, "", "x", "#/definitions/none", [], {}, [{}], [None], ["a", 1], {"": {}},
    {"$ref": 1}, {"$ref": "#"}, {"$ref": "#/paths"}, {"type": "x"},
]  # fmt: skip


def small_document(name: str) -> Any:
    if name in OTHERS:
        return load(DATA / name)
    return convert_to_v2(built_in_releases().document(RELEASES[-1], GroupVersion(name))).document


def places(node: Any, path: tuple[Any, ...] = ()) -> Any:
    for key, child in node.items() if isinstance(node, dict) else enumerate(node):
        yield (*path, key)
        if isinstance(child, dict | list):
            yield from places(child, (*path, key))


@pytest.mark.parametrize("name", SMALL_DOCUMENTS)
def test_real_document_with_one_wrong_value(name: str) -> None:
    original = small_document(name)
    everywhere = list(places(original))
    chance = random.Random(name)
    outcomes = []
    for _ in range(400_000 // len(orjson.dumps(original)) + 20):
        document = copy.deepcopy(original)
        *parents, last = chance.choice(everywhere)
        node = document
        for key in parents:
            node = node[key]
        if chance.random() < 0.2:
            del node[last]
        else:
            node[last] = chance.choice(VALUES)
        outcomes.append(outcome(document))
    assert {"refused", "converted"} == set(outcomes)


@pytest.mark.parametrize("name", SMALL_DOCUMENTS)
def test_real_document_with_damaged_bytes(name: str) -> None:
    original = orjson.dumps(small_document(name))[:50_000] + b'"}}}}'
    chance = random.Random(name)
    for _ in range(100):
        data = bytearray(original[: chance.randrange(len(original))])
        for _ in range(chance.randrange(1, 8)):
            data[chance.randrange(len(data) or 1) : len(data)] = chance.randbytes(2)
        for read in (parse, recognise):
            with pytest.raises(ConverterError):
                read(bytes(data))  # type: ignore[operator]


def swagger(**parts: Any) -> Any:
    return {"swagger": "2.0", "info": {"title": "", "version": ""}, "paths": {}, **parts}


def with_operation(**fields: Any) -> Any:
    return swagger(paths={"/a": {"get": {"responses": {"200": {"description": ""}}, **fields}}})


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        ({}, ""),
        ({"swagger": "1.2"}, ""),
        (swagger(info=[]), "/info"),
        (swagger(info={"title": 1}), "/info/title"),
        (swagger(paths=[]), "/paths"),
        (swagger(paths={"/a": []}), "/paths/~1a"),
        (swagger(paths={"/a": {"get": 1}}), "/paths/~1a/get"),
        (swagger(definitions=1), "/definitions"),
        (swagger(definitions={"A": "x"}), "/definitions/A"),
        (swagger(definitions={"A": {"properties": {"p": 1}}}), "/definitions/A/properties/p"),
        (swagger(consumes="a/a"), "/consumes"),
        (swagger(produces=[1]), "/produces/0"),
        (swagger(host=1), "/host"),
        (swagger(schemes="https"), "/schemes"),
        (swagger(tags=["a"]), "/tags/0"),
        (swagger(security={}), "/security"),
        (swagger(securityDefinitions={"k": []}), "/securityDefinitions/k"),
        (swagger(parameters={"p": {"name": "p"}}), "/parameters/p"),
        (with_operation(parameters={}), "/paths/~1a/get/parameters"),
        (with_operation(parameters=[1]), "/paths/~1a/get/parameters/0"),
        (with_operation(parameters=[{"name": 1, "in": "query"}]), "/paths/~1a/get/parameters/0"),
        (with_operation(tags="t"), "/paths/~1a/get/tags"),
        (with_operation(deprecated="yes"), "/paths/~1a/get/deprecated"),
        (with_operation(responses=[]), "/paths/~1a/get/responses"),
        (with_operation(responses={"200": {"headers": {"H": 1}}}), "/paths/~1a/get/responses/200/headers/H"),
        (with_operation(responses={"200": {"schema": 1}}), "/paths/~1a/get/responses/200/schema"),
        (with_operation(responses={"200": {"examples": []}}), "/paths/~1a/get/responses/200/examples"),
    ],
)
def test_wrong_type_is_refused_where_it_stands(document: Any, pointer: str) -> None:
    with pytest.raises(InvalidDocument) as refused:
        convert_whole(document)
    assert refused.value.pointer == pointer


EMPTY_LISTS = 300_000
FORMS: list[tuple[Callable[..., Any], bytes]] = [
    (parse, b'{"a":[' + b"[]," * EMPTY_LISTS + b"[]]}"),
    (cbor.decode, b"\xa1\x61a\x9f" + b"\x80" * EMPTY_LISTS + b"\xff"),
    (cbor.decode, b"\xa1\x61a\x9f" + b"\x79\0\1a" * EMPTY_LISTS + b"\xff"),
    (protobuf_v3.decode, b"\n\x053.0.0" + b"\x1a\0" * EMPTY_LISTS),
    (protobuf_v3.decode, b"\n\x053.0.0" + b"\x3a\0" * EMPTY_LISTS),
]


@pytest.mark.parametrize(("read_document", "data"), FORMS)
def test_many_small_values_are_refused(read_document: Callable[..., Any], data: bytes) -> None:
    """A hundred bytes of memory for each two of the input."""
    with pytest.raises(LimitExceeded, match="values"):
        read_document(data, limits=Limits(max_values=100_000))
    read_document(data, limits=Limits(max_values=2 * EMPTY_LISTS + 10))


def test_what_stands_in_a_text_is_no_value() -> None:
    text = b"\x7a" + (400_000).to_bytes(4, "big") + b"," * 400_000
    found = cbor.decode(b"\xa1\x61a" + text, limits=Limits(max_values=100_000))
    assert found == {"a": "," * 400_000}


def test_references_that_lead_to_themselves_end() -> None:
    refs = {"A": {"$ref": "#/parameters/B"}, "B": {"$ref": "#/parameters/A"}}
    schemas = {
        "A": {"$ref": "#/definitions/A"},
        "B": {"allOf": [{"$ref": "#/definitions/B"}]},
        "C": {"items": {"$ref": "#/definitions/C/items"}},
    }
    document = with_operation(
        parameters=[{"$ref": "#/parameters/A"}], responses={"200": {"$ref": "#/responses/R"}}
    )
    document |= {"parameters": refs, "definitions": schemas, "responses": {"R": {"$ref": "#/responses/R"}}}
    document["paths"]["/b"] = {"$ref": "#/paths/~1b"}
    whole = convert_whole(document)
    assert {loss.pointer for loss in whole.losses} >= {
        "/paths/~1b/$ref",
        "/parameters/B/$ref",
        "/responses/R/$ref",
    }


@pytest.mark.parametrize(
    "items",
    [
        {"anyOf": [{"type": "string"}] * 20_000},
        {"allOf": [{"type": "integer"}] * 20_000},
        {"enum": [*range(20_000, 40_000)]},
        [*[{"type": "string"}] * 20_000, {}],
    ],
)
def test_default_of_many_items_is_not_tried_with_many_schemas_for_ever(items: Any) -> None:
    schema = {"type": "array", "items": {"anyOf": [items, {}]} if isinstance(items, dict) else items}
    with pytest.raises(LimitExceeded):
        convert_whole(swagger(definitions={"A": {**schema, "default": [*range(20_000)]}}))
