"""Bodies and forms of Swagger 2.0, construct by construct."""

from __future__ import annotations

from typing import Any

import pytest

from converters.from_swagger2.swaggers import BOTH, PET, PET3, constructs, operation, swagger
from specmux_converters.from_swagger2.conversion import convert_whole
from specmux_converters.from_swagger2.reading.source import Profile

BODY = [{"name": "b", "in": "body", "schema": {"type": "string"}}]


@BOTH
@pytest.mark.parametrize(
    ("document_list", "operation_list", "types"),
    [
        (["a/a"], None, ["a/a"]),
        (["a/a"], ["b/b", "c/c"], ["b/b", "c/c"]),
        (["a/a"], [], ["*/*"]),
        (None, None, ["*/*"]),
        (None, ["*/*"], ["*/*"]),
    ],
)
def test_operation_list_replaces_the_document_list(
    profile: Profile, document_list: Any, operation_list: Any, types: list[str]
) -> None:
    shared = {} if document_list is None else {"consumes": document_list, "produces": document_list}
    fields = {} if operation_list is None else {"consumes": operation_list, "produces": operation_list}
    responses = {"200": {"description": "", "schema": {"type": "string"}}}
    found = operation(BODY, profile=profile, shared=shared, responses=responses, **fields)
    assert list(found["requestBody"]["content"]) == types
    assert list(found["responses"]["200"]["content"]) == types


@BOTH
@pytest.mark.parametrize("name", ["body", "other"])
def test_body_parameter_of_any_name_is_a_request_body(profile: Profile, name: str) -> None:
    node = {"name": name, "in": "body", "description": "d", "required": True, "schema": PET, "x-b": 1}
    found = operation([node], profile=profile, shared={"definitions": {"S": {}}}, consumes=["a/a"])
    assert found["requestBody"] == {
        "description": "d",
        "required": True,
        "x-b": 1,
        "content": {"a/a": {"schema": PET3}},
    }
    assert "parameters" not in found


@BOTH
def test_name_of_a_body_is_a_loss_where_it_says_something(profile: Profile) -> None:
    def lost(name: str) -> list[tuple[str, str]]:
        body = {"name": name, "in": "body", "schema": {}}
        item = {"put": {"parameters": [body], "responses": {"200": {"description": ""}}}}
        return constructs(convert_whole(swagger(paths={"/a": item}), profile=profile))

    assert lost("body") == []
    assert lost("pod") == [("/paths/~1a/put/parameters/0/name", "name of a body")]


@BOTH
def test_what_stands_beside_the_reference_of_a_parameter_or_response_is_a_loss(profile: Profile) -> None:
    shared: dict[str, Any] = {
        "parameters": {"Q": {"name": "q", "in": "query", "type": "string"}},
        "responses": {"R": {"description": "d"}},
    }
    get = {
        "parameters": [{"$ref": "#/parameters/Q", "description": "d"}],
        "responses": {"200": {"$ref": "#/responses/R", "x-a": 1}},
    }
    put = {"parameters": [{"$ref": "#/parameters/Q"}], "responses": {"200": {"$ref": "#/responses/R"}}}
    whole = convert_whole(swagger(paths={"/a": {"put": put, "get": get}}, **shared), profile=profile)
    operations = whole.document["paths"]["/a"]
    assert operations["get"] == operations["put"]
    assert constructs(whole) == [
        ("/paths/~1a/get/parameters/0/description", "field description"),
        ("/paths/~1a/get/responses/200/x-a", "field x-a"),
    ]


def test_shared_object_that_nothing_refers_to_is_a_loss_where_none_are_kept() -> None:
    shared: dict[str, Any] = {
        "parameters": {
            "a/b": {"name": "q", "in": "query", "type": "string"},
            "Q": {"$ref": "#/parameters/a~1b"},
        },
        "responses": {"R": {"description": "d"}},
    }
    get = {"parameters": [{"$ref": "#/parameters/Q"}], "responses": {"200": {"description": ""}}}
    document = swagger(paths={"/a": {"get": get}}, **shared)
    assert constructs(convert_whole(document, profile="oas")) == [("/parameters/a~1b", "component name")]
    assert constructs(convert_whole(document, profile="kubernetes")) == [("/responses/R", "shared object")]


SHARED_BODY = {
    "parameters": {"B": {"name": "b", "in": "body", "schema": {"type": "string"}}},
    "consumes": ["a/a"],
}


def test_shared_body_is_a_component_where_the_media_types_are_the_documents() -> None:
    ref = [{"$ref": "#/parameters/B"}]
    assert operation(ref, shared=SHARED_BODY)["requestBody"] == {"$ref": "#/components/requestBodies/B"}
    own = operation(ref, shared=SHARED_BODY, consumes=["b/b"])["requestBody"]
    assert own == {"content": {"b/b": {"schema": {"type": "string"}}}}


def test_shared_body_is_written_out_for_kubernetes() -> None:
    found = operation([{"$ref": "#/parameters/B"}], shared=SHARED_BODY, profile="kubernetes")
    assert found["requestBody"] == {"content": {"a/a": {"schema": {"type": "string"}}}}


def test_path_level_body_is_pushed_into_operations_without_one() -> None:
    own = [{"name": "o", "in": "body", "schema": {"type": "integer"}}]
    ok = {"200": {"description": ""}}
    item = {"parameters": BODY, "put": {"responses": ok}, "post": {"responses": ok, "parameters": own}}
    found = convert_whole(swagger(paths={"/a": item})).document["paths"]["/a"]
    assert found["put"]["requestBody"]["content"]["*/*"]["schema"] == {"type": "string"}
    assert found["post"]["requestBody"]["content"]["*/*"]["schema"] == {"type": "integer"}
    assert "parameters" not in found


def form(*fields: dict[str, Any], **others: Any) -> dict[str, Any]:
    result: dict[str, Any] = operation(
        [{"in": "formData", "type": "string", **each} for each in fields], **others
    )
    body: dict[str, Any] = result["requestBody"]
    return body


@BOTH
def test_path_level_body_that_no_operation_takes_is_a_loss(profile: Profile) -> None:
    body = {"name": "body", "in": "body", "schema": {}}
    field = {"name": "f", "in": "formData", "type": "string"}
    responses = {"200": {"description": ""}}

    def lost(shared: Any, own: Any) -> list[tuple[str, str]]:
        item = {"parameters": [shared]} | {
            method: {"parameters": each, "responses": responses} for method, each in own.items()
        }
        return constructs(convert_whole(swagger(paths={"/a": item}), profile=profile))

    assert lost(body, {"put": [], "post": [body]}) == []
    assert lost(body, {"put": [body], "post": [field]}) == [("/paths/~1a/parameters/0", "body parameter")]
    assert lost(body, {}) == [("/paths/~1a/parameters/0", "body parameter")]
    assert lost(field, {"put": [], "post": [field]}) == []
    assert lost(field, {"put": [field]}) == [("/paths/~1a/parameters/0", "form field")]
    assert lost(field, {"put": [body]}) == [("/paths/~1a/parameters/0", "form field")]


def test_form_fields_are_properties_of_a_urlencoded_body() -> None:
    body = form(
        {"name": "a", "required": True, "description": "d", "x-f": 1}, {"name": "b", "type": "integer"}
    )
    assert body == {
        "required": True,
        "content": {
            "application/x-www-form-urlencoded": {
                "schema": {
                    "type": "object",
                    "properties": {
                        "a": {"type": "string", "description": "d", "x-f": 1},
                        "b": {"type": "integer"},
                    },
                    "required": ["a"],
                }
            }
        },
    }


@pytest.mark.parametrize(
    ("kind", "consumes", "types"),
    [
        ("file", None, ["multipart/form-data"]),
        ("file", ["application/x-www-form-urlencoded"], ["multipart/form-data"]),
        ("string", ["multipart/form-data"], ["multipart/form-data"]),
        ("string", ["application/json"], ["application/x-www-form-urlencoded"]),
        ("string", None, ["application/x-www-form-urlencoded"]),
    ],
)
def test_form_media_type(kind: str, consumes: Any, types: list[str]) -> None:
    fields = {} if consumes is None else {"consumes": consumes}
    assert list(form({"name": "a", "type": kind}, **fields)["content"]) == types


def test_media_type_that_a_form_is_not_sent_in_is_a_loss() -> None:
    field = {"name": "a", "in": "formData", "type": "file", "hint": 1}
    types = ["application/json", "multipart/form-data", "application/x-www-form-urlencoded"]
    item = {"put": {"consumes": types, "parameters": [field], "responses": {"200": {"description": ""}}}}
    whole = convert_whole(swagger(paths={"/a": item}))
    media = whole.document["paths"]["/a"]["put"]["requestBody"]["content"]
    assert media == {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "properties": {"a": {"type": "string", "format": "binary", "x-hint": 1}},
            }
        }
    }
    assert [loss.pointer.removeprefix("/paths/~1a/put/parameters/0") for loss in whole.losses] == [
        "",
        "",
        "/hint",
    ]
    assert {loss.reason.partition(":")[0] for loss in whole.losses[:2]} == {types[0], types[2]}


def test_files_in_an_array_are_sent_as_multipart() -> None:
    """Not Swagger 2.0, but what is written for several files."""
    node = {"name": "f", "in": "formData", "type": "array", "items": {"type": "file"}}
    content = operation([node])["requestBody"]["content"]
    assert [*content] == ["multipart/form-data"]
    items = content["multipart/form-data"]["schema"]["properties"]["f"]["items"]
    assert items == {"type": "string", "format": "binary"}


def test_file_field_is_binary() -> None:
    content = form({"name": "a", "type": "file"})["content"]["multipart/form-data"]
    assert content["schema"]["properties"]["a"] == {"type": "string", "format": "binary"}


@pytest.mark.parametrize(
    ("separator", "encoding"),
    [
        (None, {"style": "form", "explode": False}),
        ("csv", {"style": "form", "explode": False}),
        ("multi", {"style": "form", "explode": True}),
        ("ssv", {"style": "spaceDelimited", "explode": False}),
        ("pipes", {"style": "pipeDelimited", "explode": False}),
    ],
)
def test_form_array_has_an_encoding(separator: str | None, encoding: Any) -> None:
    field = {"name": "a", "type": "array", "items": {"type": "string"}}
    if separator is not None:
        field["collectionFormat"] = separator
    content = form(field)["content"]["application/x-www-form-urlencoded"]
    assert content["encoding"] == {"a": encoding}


def test_shared_form_field_is_written_into_each_body() -> None:
    shared = {"parameters": {"F": {"name": "f", "in": "formData", "type": "string"}}}
    body = operation([{"$ref": "#/parameters/F"}], shared=shared)["requestBody"]
    assert body["content"]["application/x-www-form-urlencoded"]["schema"]["properties"] == {
        "f": {"type": "string"}
    }


def test_form_fields_of_the_path_are_joined() -> None:
    def field(name: str, kind: str = "string") -> dict[str, Any]:
        return {"name": name, "in": "formData", "type": kind}

    ok = {"200": {"description": ""}}
    item = {
        "parameters": [field("a"), field("b")],
        "put": {"responses": ok, "parameters": [field("b", "integer")]},
        "post": {"responses": ok, "parameters": [*BODY, *BODY, field("c")]},
    }
    whole = convert_whole(swagger(paths={"/a": item}))
    content = whole.document["paths"]["/a"]["put"]["requestBody"]["content"][
        "application/x-www-form-urlencoded"
    ]
    assert content["schema"]["properties"] == {"a": {"type": "string"}, "b": {"type": "integer"}}
    assert whole.document["paths"]["/a"]["post"]["requestBody"] == {
        "content": {"*/*": {"schema": {"type": "string"}}}
    }
    assert constructs(whole) == [
        ("/paths/~1a/parameters/0", "form field"),
        ("/paths/~1a/parameters/1", "form field"),
        ("/paths/~1a/post/parameters/0/name", "name of a body"),
        ("/paths/~1a/post/parameters/1", "body parameter"),
        ("/paths/~1a/post/parameters/2", "form field"),
    ]
