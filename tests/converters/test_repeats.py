"""The same text in many operations: converted once, and yet right in each place."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from specmux_converters import Limits, convert
from specmux_converters.errors import LimitExceeded
from specmux_converters.from_swagger2.conversion import convert_whole
from specmux_converters.from_swagger2.paths import operations
from specmux_converters.group_versions import GroupVersion
from specmux_converters.losses import Loss, pointer_to

GROUP_VERSION = GroupVersion("apis/a/v1")
QUERY = {"name": "limit", "in": "query", "type": "integer"}
FORM = {"name": "file", "in": "formData", "type": "file", "allowEmptyValue": True}
BODY = {"name": "body", "in": "body", "schema": {"$ref": "#/definitions/A", "unknown": 1}}
DEFINITIONS = {"A": {"type": "object", "properties": {"b": {"$ref": "#/definitions/B"}}}, "B": {}}


def document(operation: dict[str, Any], *paths: str, **more: Any) -> dict[str, Any]:
    item = {"post": {"responses": {"200": {"description": "OK"}}, **operation}}
    frame = {"swagger": "2.0", "info": {"title": "", "version": ""}, "definitions": DEFINITIONS}
    return {**frame, "paths": dict.fromkeys(paths, item), **more}


def test_each_document_has_the_components_of_a_repeated_response() -> None:
    responses = {"200": {"description": "OK", "schema": {"$ref": "#/definitions/A"}}}
    made = convert(document({"responses": responses}, "/apis/a/v1/x", "/apis/b/v1/x"))
    for each in made.documents.values():
        assert each["components"]["schemas"].keys() == {"A", "B"}


@pytest.mark.parametrize("written", [BODY, FORM])
def test_what_a_repeated_body_loses_is_reported_in_each_place(written: dict[str, Any]) -> None:
    paths = ("/apis/a/v1/x", "/apis/a/v1/y")
    made = convert(document({"parameters": [QUERY, written]}, *paths))
    for path in paths:
        start = pointer_to("paths", path, "post", "parameters", 1)
        assert any(loss.pointer.startswith(start) for loss in made.losses)
        operation = made.documents[GROUP_VERSION]["paths"][path]["post"]
        assert operation["parameters"] == [{"name": "limit", "in": "query", "schema": {"type": "integer"}}]
        assert "requestBody" in operation


def test_a_second_body_is_reported_in_each_place() -> None:
    paths = ("/apis/a/v1/x", "/apis/a/v1/y")
    made = convert(document({"parameters": [BODY, BODY]}, *paths))
    for path in paths:
        pointer = pointer_to("paths", path, "post", "parameters", 1)
        assert Loss(pointer, "body parameter", "a second one; left out") in made.losses


def test_a_repeated_list_has_the_body_that_its_operation_accepts() -> None:
    paths = ("/apis/a/v1/x", "/apis/a/v1/y")
    swagger = document({"parameters": [BODY]}, *paths)
    own = {**swagger["paths"][paths[1]]["post"], "consumes": ["text/plain"]}
    swagger["paths"] = {paths[0]: swagger["paths"][paths[0]], paths[1]: {"post": own}}
    made = convert(swagger).documents[GROUP_VERSION]["paths"]
    contents = [made[path]["post"]["requestBody"]["content"].keys() for path in paths]
    assert contents == [{"*/*"}, {"text/plain"}]


def test_the_same_list_below_another_path_declares_what_that_path_has() -> None:
    listed = [{"name": "id", "in": "path", "required": True, "type": "string"}]
    made = convert(document({"parameters": listed}, "/apis/a/v1/{id}", "/apis/a/v1/{other}", "/apis/a/v1/x"))
    paths = made.documents[GROUP_VERSION]["paths"]
    names = {path: [each["name"] for each in paths[path]["post"].get("parameters", ())] for path in paths}
    assert names == {"/apis/a/v1/{id}": ["id"], "/apis/a/v1/{other}": ["other"], "/apis/a/v1/x": []}


@pytest.mark.parametrize("profile", ["kubernetes", "oas"])
def test_references_in_repeated_lists_are_followed_in_each_place(profile: Any) -> None:
    shared = {"limit": QUERY, "body": BODY, "file": FORM}
    for name in shared:
        listed = [{"$ref": f"#/parameters/{name}"}]
        one = document({"parameters": listed}, "/apis/a/v1/x", parameters=shared)
        two = document({"parameters": listed}, "/apis/a/v1/x", "/apis/a/v1/y", parameters=shared)
        alone = convert_whole(one, profile=profile).document
        both = convert_whole(two, profile=profile).document
        assert both["paths"]["/apis/a/v1/y"] == alone["paths"]["/apis/a/v1/x"]
        assert both["components"] == alone["components"]


def test_a_repetition_costs_what_the_first_did() -> None:
    """Else a small document could ask for any number of large ones."""
    shared = {"long": {**QUERY, "description": "x" * 10_000}}
    paths = [f"/apis/a/v1/{number}" for number in range(40)]
    swagger = document({"parameters": [{"$ref": "#/parameters/long"}]}, *paths, parameters=shared)
    convert(swagger, limits=Limits(max_expanded_bytes=1_000_000))
    with pytest.raises(LimitExceeded):
        convert(swagger, limits=Limits(max_expanded_bytes=500_000))


def test_what_is_repeated_is_converted_once(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def noting(module: ModuleType, name: str) -> None:
        make = getattr(module, name)

        def noted(*given: Any) -> Any:
            seen.append(name)
            return make(*given)

        monkeypatch.setattr(module, name, noted)

    noting(operations, "convert_parameter")
    noting(operations, "_RESPONSE")
    responses = {"200": {"description": "OK", "headers": {"X-Count": {"type": "integer"}}}}
    operation = {"parameters": [QUERY], "responses": responses}
    convert(document(operation, "/apis/a/v1/x", "/apis/a/v1/y", "/apis/b/v1/x"))
    assert sorted(seen) == ["_RESPONSE", "convert_parameter"]
