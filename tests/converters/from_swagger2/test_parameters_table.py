"""Parameters and responses of Swagger 2.0, construct by construct."""

from __future__ import annotations

from typing import Any

import pytest

from converters.from_swagger2.swaggers import BOTH, PET, PET3, constructs, operation, parameter, swagger
from specmux_converters.from_swagger2.conversion import convert_whole
from specmux_converters.from_swagger2.reading.source import Profile


@BOTH
def test_reference_to_a_shared_object_of_another_kind_is_written_out(profile: Profile) -> None:
    shared = {
        "parameters": {"X": {"name": "p", "in": "query", "type": "string"}},
        "responses": {"X": {"description": "d"}},
    }
    found = operation(
        [{"$ref": "#/parameters/X"}],
        profile=profile,
        shared=shared,
        responses={"200": {"$ref": "#/parameters/X"}},
    )
    assert found["responses"]["200"] == {
        "description": "",
        "x-name": "p",
        "x-in": "query",
        "x-type": "string",
    }


@BOTH
@pytest.mark.parametrize(
    ("location", "separator", "style"),
    [
        ("query", None, {"style": "form", "explode": False}),
        ("query", "csv", {"style": "form", "explode": False}),
        ("query", "ssv", {"style": "spaceDelimited", "explode": False}),
        ("query", "pipes", {"style": "pipeDelimited", "explode": False}),
        ("query", "multi", {"style": "form", "explode": True}),
        ("header", None, {"style": "simple"}),
        ("header", "csv", {"style": "simple"}),
    ],
)
def test_collection_format(profile: Profile, location: str, separator: str | None, style: Any) -> None:
    fields: dict[str, Any] = {
        "in": location,
        "type": "array",
        "items": {"type": "integer", "format": "int32"},
    }
    if separator is not None:
        fields["collectionFormat"] = separator
    assert parameter(profile, **fields) == {
        "name": "p",
        "in": location,
        "schema": {"type": "array", "items": {"type": "integer", "format": "int32"}},
        **style,
    }


@pytest.mark.parametrize(
    ("location", "separator"), [("query", "tsv"), ("header", "ssv"), ("header", "multi")]
)
def test_separator_without_equivalent_is_kept_as_an_extension(location: str, separator: str) -> None:
    node = {
        "name": "p",
        "in": location,
        "type": "array",
        "items": {"type": "string"},
        "collectionFormat": separator,
    }
    ok = {"200": {"description": ""}}
    whole = convert_whole(swagger(paths={"/a": {"get": {"parameters": [node], "responses": ok}}}))
    found = whole.document["paths"]["/a"]["get"]["parameters"][0]
    assert found["x-collectionFormat"] == separator
    assert constructs(whole) == [("/paths/~1a/get/parameters/0/collectionFormat", "collectionFormat")]


def test_nested_collection_format_is_kept_as_an_extension() -> None:
    items = {"type": "array", "collectionFormat": "pipes", "items": {"type": "string"}}
    found = parameter(type="array", items=items, collectionFormat="multi")
    assert found["schema"]["items"] == {
        "type": "array",
        "items": {"type": "string"},
        "x-collectionFormat": "pipes",
    }


@BOTH
def test_parameter_keywords_move_into_the_schema(profile: Profile) -> None:
    inner = {
        "type": "integer", "format": "int32", "default": 4, "enum": [2, 4], "maximum": 9,
        "exclusiveMaximum": True, "minimum": 1, "multipleOf": 2, "uniqueItems": True,
    }  # fmt: skip
    outer = {"description": "d", "required": True, "allowEmptyValue": True, "x-p": {"items": 1}}
    assert parameter(profile, **inner, **outer) == {"name": "p", "in": "query", "schema": inner, **outer}


def test_shared_parameter_is_a_component_in_oas_and_written_out_for_kubernetes() -> None:
    shared = {"parameters": {"a/b": {"name": "p", "in": "query", "type": "string"}}}
    written = {"name": "p", "in": "query", "schema": {"type": "string"}}
    refs = [{"$ref": "#/parameters/a~1b"}]
    assert operation(refs, shared=shared)["parameters"] == [{"$ref": "#/components/parameters/a_b"}]
    assert operation(refs, shared=shared, profile="kubernetes")["parameters"] == [written]
    assert convert_whole(swagger(**shared)).document["components"]["parameters"] == {"a_b": written}
    assert "components" not in convert_whole(swagger(**shared), profile="kubernetes").document


def test_path_parameter_that_is_not_declared_is_added_and_one_not_in_the_path_left_out() -> None:
    nodes = [{"name": "x", "in": "path", "required": True, "type": "string"}]
    item = {"get": {"parameters": nodes, "responses": {"200": {"description": ""}}}}
    whole = convert_whole(swagger(paths={"/a/{b}": item}))
    added = {"name": "b", "in": "path", "required": True, "schema": {"type": "string"}}
    assert whole.document["paths"]["/a/{b}"]["get"]["parameters"] == [added]
    assert constructs(whole) == [
        ("/paths/~1a~1{b}/get", "path parameter"),
        ("/paths/~1a~1{b}/get/parameters/0", "path parameter"),
    ]


RESPONSE = {"description": "d", "schema": PET, "x-r": 1}


def test_shared_response_is_a_component_where_the_media_types_are_the_documents() -> None:
    shared = {"responses": {"R": RESPONSE}, "definitions": {"S": {}}, "produces": ["a/a"]}
    ref = {"200": {"$ref": "#/responses/R"}}
    assert operation(shared=shared, responses=ref)["responses"] == {
        "200": {"$ref": "#/components/responses/R"}
    }
    own = operation(shared=shared, responses=ref, produces=["b/b"])["responses"]["200"]
    assert own == {"description": "d", "content": {"b/b": {"schema": PET3}}, "x-r": 1}
    components = convert_whole(swagger(**shared)).document["components"]["responses"]
    assert components == {"R": {"description": "d", "content": {"a/a": {"schema": PET3}}, "x-r": 1}}


def test_response_headers_have_schemas() -> None:
    headers = {
        "A": {"type": "integer", "description": "d", "x-h": 1},
        "B": {"type": "array", "items": {"type": "string"}},
    }
    found = operation(responses={"200": {"description": "", "headers": headers}})["responses"]["200"][
        "headers"
    ]
    assert found == {
        "A": {"schema": {"type": "integer"}, "description": "d", "x-h": 1},
        "B": {"schema": {"type": "array", "items": {"type": "string"}}, "style": "simple"},
    }


def test_response_examples_stand_under_their_media_type() -> None:
    node = {"description": "", "schema": {"type": "string"}, "examples": {"a/a": {"$ref": "#/x"}, "b/b": 1}}
    content = operation(produces=["a/a"], responses={"200": node})["responses"]["200"]["content"]
    assert content == {
        "a/a": {"schema": {"type": "string"}, "example": {"$ref": "#/x"}},
        "b/b": {"schema": {"type": "string"}, "example": 1},
    }


@BOTH
def test_file_response_is_binary(profile: Profile) -> None:
    found = operation(profile=profile, responses={"200": {"description": "", "schema": {"type": "file"}}})
    assert found["responses"]["200"]["content"] == {"*/*": {"schema": {"type": "string", "format": "binary"}}}


def test_operation_without_responses_gets_a_default_one() -> None:
    whole = convert_whole(swagger(paths={"/a": {"get": {"responses": {"x-r": 1, "2xx": {}}}}}))
    found = whole.document["paths"]["/a"]["get"]["responses"]
    assert found == {"x-r": 1, "x-2xx": {}, "default": {"description": ""}}
    assert constructs(whole) == [
        ("/paths/~1a/get/responses", "operation without responses"),
        ("/paths/~1a/get/responses/2xx", "field 2xx"),
    ]


def test_range_of_statuses_is_one_in_v3_too() -> None:
    shared = {"definitions": {"S": {"type": "string"}}}
    found = operation(responses={"4XX": {"description": "d", "schema": PET}}, shared=shared)
    assert found["responses"] == {"4XX": {"description": "d", "content": {"*/*": {"schema": PET3}}}}


def test_operation_that_says_nothing_of_responses_is_the_place_of_the_loss() -> None:
    whole = convert_whole(swagger(paths={"/a": {"get": {}, "put": {"responses": {}}}}))
    answers = {"responses": {"default": {"description": ""}}}
    assert whole.document["paths"]["/a"] == {"get": answers, "put": answers}
    assert [loss.pointer for loss in whole.losses] == ["/paths/~1a/get", "/paths/~1a/put/responses"]
