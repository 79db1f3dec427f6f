"""OpenAPI v3 to Swagger 2.0, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.built_in_swagger import documents_of
from sampling import examples
from shared_data import DATA, read
from specmux_converters import convert_whole
from specmux_converters.errors import ConverterError, InvalidDocument, LimitExceeded
from specmux_converters.recognise import DocumentKind, recognise
from specmux_converters.to_swagger2.conversion import convert_to_v2, join_pieces, piece_of


def document(**rest: Any) -> dict[str, Any]:
    return {"openapi": "3.0.3", "info": {"title": "t", "version": "1"}, "paths": {}, **rest}


def schema(node: Any, profile: Any = "oas", name: str = "S") -> tuple[Any, list[str]]:
    found = convert_to_v2(document(components={"schemas": {name: node}}), profile=profile)
    return found.document["definitions"][name], [loss.construct for loss in found.losses]


REF = {"$ref": "#/components/schemas/Pod"}
OLD_REF = {"$ref": "#/definitions/Pod"}


@pytest.mark.parametrize(
    ("node", "written", "lost"),
    [
        ({"allOf": [REF], "description": "d", "default": {}}, {**OLD_REF, "description": "d"}, ["default"]),
        ({"oneOf": [{"type": "integer"}, {"type": "string"}], "format": "int-or-string"},
         {"type": "string", "format": "int-or-string"}, []),
        ({"oneOf": [{"type": "string"}, {"type": "number"}]}, {"type": "string"}, ["oneOf"]),
        ({"oneOf": [{"type": "string"}, {"type": "number"}], "format": "f"},
         {"type": "string", "format": "f"}, ["oneOf"]),
        ({"properties": {"$ref": {"type": "string"}, "default": {"default": 1}}},
         {"properties": {"$ref": {"type": "string"}, "default": {}}}, ["default"]),
        ({"type": "array", "items": REF}, {"type": "array", "items": OLD_REF}, []),
        ({"additionalProperties": {"type": "string", "default": ""}},
         {"additionalProperties": {"type": "string"}}, ["default"]),
    ],
)  # fmt: skip
def test_a_schema_of_a_go_type(node: Any, written: Any, lost: list[str]) -> None:
    assert schema(node, "kubernetes") == (written, lost)


KIND = [{"group": "example.com", "version": "v1", "kind": "Widget"}]


@pytest.mark.parametrize(
    ("node", "written"),
    [
        ({"type": "string", "nullable": True, "default": "a"}, {"default": "a"}),
        ({"type": "object", "nullable": True, "properties": {"a": {}}}, {}),
        ({"x-kubernetes-preserve-unknown-fields": True, "type": "object", "properties": {"a": {}}},
         {"x-kubernetes-preserve-unknown-fields": True}),
        ({"type": "array", "items": {"type": "string"}, "anyOf": [{"minItems": 1}]},
         {"type": "array", "items": {"type": "string"}}),
        ({"type": "object", "required": ["a", "b"],
          "properties": {"a": {"type": "string", "nullable": True}, "b": {"type": "string"}}},
         {"type": "object", "required": ["b"], "properties": {"a": {}, "b": {"type": "string"}}}),
        ({"x-kubernetes-int-or-string": True, "anyOf": [{"type": "integer"}, {"type": "string"}]},
         {"x-kubernetes-int-or-string": True}),
    ],
)  # fmt: skip
def test_a_schema_of_a_definition(node: Any, written: Any) -> None:
    whole = {"type": "object", "properties": {"spec": node}, "x-kubernetes-group-version-kind": KIND}
    found, _ = schema(whole, "kubernetes", "com.example.v1.Widget")
    assert found["properties"]["spec"] == written


def test_what_a_definition_loses_is_reported() -> None:
    fields = {
        "priority": {"nullable": True, "x-kubernetes-int-or-string": True},
        "template": {"type": "object", "x-kubernetes-embedded-resource": True,
                     "x-kubernetes-preserve-unknown-fields": True, "required": ["kind", "apiVersion"]},
    }  # fmt: skip
    whole = {"type": "object", "properties": fields, "x-kubernetes-group-version-kind": KIND}
    found, lost = schema(whole, "kubernetes", "com.example.v1.Widget")
    assert found["properties"]["priority"] == {"x-kubernetes-int-or-string": True}
    assert lost == ["nullable", "type", "required"]


@pytest.mark.parametrize(
    ("required", "kept"),
    [
        (["kind", "apiVersion"], None),
        (["a", "kind", "apiVersion"], ["a"]),
        (["kind", "a", "apiVersion"], ["kind", "a"]),
        (["apiVersion", "kind"], ["apiVersion", "kind"]),
        (["apiVersion", "a", "kind"], ["apiVersion", "a", "kind"]),
    ],
)
def test_an_embedded_resource_requires_what_its_definition_does(required: Any, kept: Any) -> None:
    node = {"type": "object", "required": required,
            "x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}  # fmt: skip
    whole = {"type": "object", "properties": {"spec": node}, "x-kubernetes-group-version-kind": KIND}
    found, _ = schema(whole, "kubernetes", "com.example.v1.Widget")
    assert found["properties"]["spec"].get("required") == kept


def test_a_definition_that_keeps_unknown_fields_is_an_open_object() -> None:
    node = {"type": "object", "properties": {"a": {}}, "x-kubernetes-preserve-unknown-fields": True,
            "x-kubernetes-group-version-kind": KIND}  # fmt: skip
    found, _ = schema(node, "kubernetes", "com.example.v1.Widget")
    assert found == {"type": "object", "x-kubernetes-group-version-kind": KIND}


@pytest.mark.parametrize(
    ("node", "written", "lost"),
    [
        ({"type": "string", "nullable": True}, {"type": "string", "x-nullable": True}, ["nullable"]),
        ({"oneOf": [REF]}, {"x-oneOf": [OLD_REF]}, ["oneOf"]),
        ({"not": {"type": "string"}}, {"x-not": {"type": "string"}}, ["not"]),
        ({"type": "string", "writeOnly": True}, {"type": "string", "x-writeOnly": True}, ["field writeOnly"]),
        ({"type": "integer", "default": 1}, {"type": "integer", "default": 1}, []),
        ({"discriminator": {"propertyName": "k", "mapping": {"a": "#/a"}}},
         {"discriminator": "k", "x-mapping": {"a": "#/a"}}, ["mapping"]),
    ],
)  # fmt: skip
def test_a_schema_in_the_oas_profile(node: Any, written: Any, lost: list[str]) -> None:
    assert schema(node) == (written, lost)


NAMES = {"Names": {"type": "array", "items": {"type": "integer"}}}


def operation(**rest: Any) -> tuple[dict[str, Any], list[str]]:
    paths = {"/a": {"post": {"responses": {"200": {"description": "d"}}, **rest}}}
    found = convert_to_v2(document(paths=paths, components={"schemas": NAMES}), profile="oas")
    return found.document["paths"]["/a"]["post"], [loss.construct for loss in found.losses]


def test_a_request_body_becomes_a_parameter() -> None:
    content = {"application/json": {"schema": REF}, "application/yaml": {"schema": REF}}
    found, lost = operation(requestBody={"required": True, "content": content})
    assert found["consumes"] == ["application/json", "application/yaml"]
    assert found["parameters"] == [{"name": "body", "in": "body", "required": True, "schema": OLD_REF}]
    assert not lost


def test_a_form_becomes_its_fields() -> None:
    properties = {"f": {"type": "string", "format": "binary"}, "n": {"type": "integer"}}
    form = {
        "multipart/form-data": {"schema": {"type": "object", "properties": properties, "required": ["f"]}}
    }
    found, lost = operation(requestBody={"content": form})
    assert found["parameters"] == [
        {"name": "f", "in": "formData", "required": True, "type": "file"},
        {"name": "n", "in": "formData", "type": "integer"},
    ]
    assert not lost


def test_a_file_is_a_binary_string_of_v3() -> None:
    binary = {"type": "string", "format": "binary", "description": "d"}
    for node, written in ((binary, {"type": "file", "description": "d"}), ({**binary, "maxLength": 1},) * 2):
        found, lost = operation(responses={"200": {"description": "d", "content": {"*/*": {"schema": node}}}})
        assert (found["responses"]["200"]["schema"], lost) == (written, [])


def test_responses_have_one_schema() -> None:
    content = {
        "application/json": {"schema": REF, "example": 1},
        "text/plain": {"schema": {"type": "string"}},
    }
    found, lost = operation(responses={"200": {"description": "d", "content": content}})
    assert found["produces"] == ["application/json", "text/plain"]
    assert found["responses"]["200"] == {
        "description": "d", "schema": OLD_REF, "examples": {"application/json": 1},
    }  # fmt: skip
    assert lost == ["schema of a media type"]


@pytest.mark.parametrize(
    ("parameter", "written", "lost"),
    [
        ({"in": "query", "schema": {"type": "array", "items": {"type": "string"}}},
         {"in": "query", "type": "array", "items": {"type": "string"}, "collectionFormat": "multi"}, []),
        ({"in": "query", "style": "pipeDelimited", "explode": False,
          "schema": {"type": "array", "items": {"type": "string"}}},
         {"in": "query", "type": "array", "items": {"type": "string"}, "collectionFormat": "pipes"}, []),
        ({"in": "query", "schema": {"type": "object"}}, {"in": "query", "type": "string"}, ["type"]),
        ({"in": "query", "schema": {"enum": ["a"], "maxItems": 1}},
         {"in": "query", "type": "string", "enum": ["a"]}, ["type", "field maxItems"]),
        ({"in": "query", "schema": {"$ref": "#/components/schemas/Names"}},
         {"in": "query", "type": "array", "items": {"type": "integer"}, "collectionFormat": "multi"}, []),
        ({"in": "cookie", "schema": {"type": "string"}}, None, ["parameter"]),
        ({"in": "path", "required": True, "schema": {"type": "string"}},
         {"in": "path", "required": True, "type": "string"}, []),
    ],
)  # fmt: skip
def test_parameters(parameter: Any, written: Any, lost: list[str]) -> None:
    found, losses = operation(parameters=[{"name": "p", **parameter}])
    assert found.get("parameters", [None]) == [written and {"name": "p", **written}]
    assert losses == lost


def test_servers_and_security() -> None:
    schemes = {
        "b": {"type": "http", "scheme": "basic"},
        "o": {"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "u", "scopes": {"s": "t"}}}},
        "i": {"type": "openIdConnect", "openIdConnectUrl": "u"},
    }
    servers = [{"url": "https://h/b"}, {"url": "http://h/b"}, {"url": "https://other"}]
    found = convert_to_v2(document(servers=servers, components={"securitySchemes": schemes}), profile="oas")
    assert (found.document["host"], found.document["basePath"]) == ("h", "/b")
    assert found.document["schemes"] == ["https", "http"]
    assert found.document["securityDefinitions"] == {
        "b": {"type": "basic"},
        "o": {"type": "oauth2", "flow": "application", "tokenUrl": "u", "scopes": {"s": "t"}},
    }
    assert [loss.construct for loss in found.losses] == ["security scheme", "server"]


def test_pieces_are_joined_and_what_differs_is_reported() -> None:
    one = {
        "description": "D",
        "x-kubernetes-group-version-kind": [{"group": "", "kind": "D", "version": "v1"}],
    }
    two = {**one, "x-kubernetes-group-version-kind": [{"group": "apps", "kind": "D", "version": "v1"}]}
    documents = {
        "a": document(paths={"/a": {}}, components={"schemas": {"D": one, "E": {"type": "string"}}}),
        "b": document(
            paths={"/a": {}, "/b": {}}, components={"schemas": {"D": two, "E": {"type": "integer"}}}
        ),
    }
    found = join_pieces({key: piece_of(each) for key, each in documents.items()})
    assert list(found.document["paths"]) == ["/a", "/b"]
    kinds = found.document["definitions"]["D"]["x-kubernetes-group-version-kind"]
    assert [kind["group"] for kind in kinds] == ["", "apps"]
    assert found.document["definitions"]["E"] == {"type": "string"}
    assert [(loss.pointer, loss.construct) for loss in found.losses] == [
        ("b#/paths", "path"), ("b#/components/schemas", "definition"),
    ]  # fmt: skip


def test_what_is_no_document_is_refused() -> None:
    with pytest.raises(InvalidDocument):
        convert_to_v2({"swagger": "2.0"})
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"items": deep}
    with pytest.raises(LimitExceeded):
        convert_to_v2(document(components={"schemas": {"S": deep}}))


SCALARS = st.fixed_dictionaries(
    {"type": st.sampled_from(["string", "integer", "boolean", "number"])},
    optional={"description": st.text("ab", max_size=3), "x-nullable": st.just(True), "title": st.just("t")},
)
SCHEMAS = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(
            lambda properties: {"type": "object", "properties": properties},
            st.dictionaries(st.sampled_from(["a", "$ref", "items"]), inner, max_size=2),
        ),
        st.builds(lambda value: {"type": "object", "additionalProperties": value}, inner),
        st.builds(lambda parts: {"allOf": parts}, st.lists(inner, min_size=2, max_size=2)),
        st.just({"$ref": "#/definitions/S"}),
    ),
    max_leaves=6,
)


@examples(150)
@given(SCHEMAS, st.sampled_from(["csv", "ssv", "pipes", "multi"]), st.booleans())
def test_v2_to_v3_to_v2_keeps_the_meaning(node: Any, collection: str, is_form: bool) -> None:
    listed = {"name": "l", "in": "query", "type": "array", "items": {"type": "string"}}
    if collection != "csv":
        listed["collectionFormat"] = collection
    field = {"name": "f", "in": "formData", "type": "file", "required": True}
    body = {"name": "body", "in": "body", "schema": node}
    swagger = {
        "swagger": "2.0",
        "info": {"title": "t", "version": "1"},
        "paths": {
            "/a": {
                "post": {
                    "consumes": ["multipart/form-data" if is_form else "application/json"],
                    "produces": ["application/json"],
                    "parameters": [listed, field if is_form else body],
                    "responses": {"200": {"description": "d", "schema": node}},
                }
            }
        },
        "definitions": {"S": node if "$ref" not in node else {"type": "string"}},
    }
    again = convert_to_v2(convert_whole(swagger, profile="oas").document, profile="oas").document
    assert without_nullable(again) == without_nullable(swagger)


V3_SCHEMAS = st.recursive(
    st.fixed_dictionaries(
        {"type": st.sampled_from(["string", "integer", "boolean", "number"])},
        optional={"description": st.just("d"), "format": st.just("f"), "x-a": st.just([1])},
    ),
    lambda inner: st.one_of(
        st.builds(lambda items: {"type": "array", "items": items}, inner),
        st.builds(
            lambda properties: (
                {"type": "object", "properties": properties, "required": sorted(properties)[:1]}
                if properties
                else {"type": "object"}
            ),
            st.dictionaries(st.sampled_from(["a", "$ref", "default"]), inner, max_size=2),
        ),
        st.builds(
            lambda parts: {"allOf": parts, "description": "d"}, st.lists(inner, min_size=1, max_size=2)
        ),
        st.just({"$ref": "#/components/schemas/S"}),
    ),
    max_leaves=6,
)
V3_PARAMETERS = st.sampled_from(
    [
        {"name": "q", "in": "query", "description": "d", "schema": {"type": "string", "enum": ["a"]}},
        {"name": "h", "in": "header", "required": True, "schema": {"type": "integer", "maximum": 3}},
        {"name": "l", "in": "query", "style": "pipeDelimited", "explode": False,
         "schema": {"type": "array", "items": {"type": "string"}}},
        {"name": "m", "in": "query", "style": "form", "explode": True,
         "schema": {"type": "array", "items": {"type": "number"}}},
    ]
)  # fmt: skip


@examples(150)
@given(V3_SCHEMAS, V3_PARAMETERS, st.sampled_from(["200", "404", "default"]))
def test_v3_to_v2_to_v3_is_the_same_where_nothing_is_lost(node: Any, parameter: Any, status: str) -> None:
    media = {"application/json": {"schema": node}}
    operation_ = {
        "operationId": "o",
        "parameters": [parameter],
        "requestBody": {"content": media, "required": True},
        "responses": {
            status: {"description": "d", "content": media, "headers": {"x": {"schema": {"type": "string"}}}}
        },
    }
    before = document(
        servers=[{"url": "https://h/b"}],
        paths={"/a": {"post": operation_}},
        components={"schemas": {"S": node if "$ref" not in node else {"type": "string"}}},
    )
    made = convert_to_v2(before, profile="oas")
    assert not made.losses
    assert convert_whole(made.document, profile="oas").document == before


def without_nullable(node: Any) -> Any:
    """v3 has to say null in the alternatives, too, where a schema is nullable beside ``allOf``."""
    if isinstance(node, dict):
        return {key: without_nullable(value) for key, value in node.items() if key != "x-nullable"}
    return [without_nullable(item) for item in node] if isinstance(node, list) else node


def swagger_fixtures() -> Iterator[bytes]:
    """Of others, else made of built-in documents."""
    folders = [DATA / name for name in ("swagger2openapi-fixtures", "v2-other", "aggregated-v2")]
    if not all(folder.is_dir() for folder in folders):
        made = (convert_to_v2(each).document for each in documents_of("1.35").values())
        yield from map(orjson.dumps, made)
    for path in sorted(each for folder in folders for each in folder.rglob("*.*") if each.is_file()):
        yield read(path)


def test_fixtures_come_back_with_the_same_operations(tally: Callable[[str, int], None]) -> None:
    methods = {"get", "put", "post", "delete", "options", "head", "patch"}
    compared = 0
    for data in swagger_fixtures():
        try:
            found = recognise(data)
            if found.kind is not DocumentKind.SWAGGER_2:
                continue
            whole = convert_whole(found.documents[0], profile="oas").document
        except ConverterError:
            continue  # what the other direction refuses has tests there
        again = convert_to_v2(whole, profile="oas").document
        assert {path: methods & item.keys() for path, item in again["paths"].items()} == {
            path: methods & item.keys() for path, item in whole["paths"].items()
        }
        assert again["definitions"].keys() == whole.get("components", {}).get("schemas", {}).keys()
        compared += 1
    assert compared > 24
    tally("fixtures of Swagger 2.0, to v3 and back", compared)


@pytest.mark.parametrize("form", ["Multipart/Form-Data", "application/X-WWW-form-urlencoded; charset=utf-8"])
def test_a_form_is_one_in_any_spelling_of_its_media_type(form: str) -> None:
    content = {form: {"schema": {"type": "object", "properties": {"n": {"type": "integer"}}}}}
    paths = {
        "/a": {"post": {"requestBody": {"content": content}, "responses": {"200": {"description": "d"}}}}
    }
    found = convert_to_v2(document(paths=paths), profile="oas").document["paths"]["/a"]["post"]
    assert [each["in"] for each in found["parameters"]] == ["formData"]
