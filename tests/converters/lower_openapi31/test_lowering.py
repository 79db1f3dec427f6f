"""OpenAPI 3.1 as 3.0: the same values are valid, and what cannot be said is a loss."""

from __future__ import annotations

import copy
from typing import Any

import jsonschema
import pytest

from specmux_converters.errors import InvalidDocument
from specmux_converters.losses import Grade
from specmux_converters.lower_openapi31 import as_openapi_30, is_later_than_30
from specmux_converters.recognise import DocumentKind, recognise

VALUES: list[Any] = [None, True, 0, 1, 3, 5, 7.5, "a", "b", "ab", [], ["a"], [1], {}, {"a": 1}, {"a": "x"}]


def lowered(schema: Any) -> tuple[Any, list[tuple[str, str]]]:
    document = {"openapi": "3.1.0", "info": {}, "components": {"schemas": {"A": schema}}}
    before = copy.deepcopy(document)
    made, losses = as_openapi_30(document)
    assert document == before
    return made["components"]["schemas"]["A"], [(loss.pointer, loss.construct) for loss in losses]


def as_draft_4(schema: Any) -> Any:
    """What 3.0 means, in the draft that it goes by; ``nullable`` counts beside a type alone."""
    if isinstance(schema, list):
        return [as_draft_4(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: as_draft_4(value) for key, value in schema.items() if key not in ("nullable", "example")}
    if schema.get("nullable") and "type" in schema:
        made["type"] = [schema["type"], "null"]
    return made


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ({"type": ["string"]}, {"type": "string"}),
        ({"type": "null"}, {"enum": [None]}),
        ({"type": ["null"]}, {"enum": [None]}),
        ({"type": ["string", "integer"]}, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        ({"type": ["string", "null"], "enum": ["a"]}, {"type": "string", "enum": ["a"]}),
        ({"type": ["string", "null"], "enum": ["a", None]}, None),
        (
            {"type": ["array", "null"], "items": {"type": "string"}},
            {"type": "array", "nullable": True, "items": {"type": "string"}},
        ),
        (
            {"type": ["array", "integer", "null"], "items": {"type": "string"}},
            {
                "anyOf": [
                    {"type": "array", "nullable": True, "items": {"type": "string"}},
                    {"type": "integer", "nullable": True},
                ]
            },
        ),
        ({"type": "array"}, {"type": "array", "items": {}}),
        ({"const": 3}, {"enum": [3]}),
        ({"const": None}, {"enum": [None]}),
        ({"exclusiveMinimum": 3}, {"minimum": 3, "exclusiveMinimum": True}),
        ({"exclusiveMinimum": 3, "minimum": 5}, {"minimum": 5}),
        ({"exclusiveMinimum": 3, "minimum": 1}, {"minimum": 3, "exclusiveMinimum": True}),
        ({"exclusiveMaximum": 5, "maximum": 5}, {"maximum": 5, "exclusiveMaximum": True}),
        ({"exclusiveMaximum": 5, "maximum": 3}, {"maximum": 3}),
        ({"properties": {"a": True, "b": False}}, {"properties": {"a": {}, "b": {"not": {}}}}),
        (
            {"anyOf": [{"type": "string"}, {"type": "null"}]},
            {"anyOf": [{"type": "string"}, {"enum": [None]}]},
        ),
        ({"additionalProperties": {"type": ["integer", "null"]}}, None),
        ({"oneOf": [{"const": "a"}, {"const": "b"}]}, None),
        ({"properties": {"type": {"type": ["string", "null"]}, "const": {"const": 1}}}, None),
    ],
)
def test_the_same_values_are_valid(schema: dict[str, Any], expected: Any) -> None:
    made, losses = lowered(schema)
    assert expected is None or made == expected
    assert losses == []
    before, after = jsonschema.Draft202012Validator(schema), jsonschema.Draft4Validator(as_draft_4(made))
    for value in VALUES:
        assert before.is_valid(value) == after.is_valid(value), value


def test_what_stands_beside_a_reference_is_kept() -> None:
    made, _ = lowered(
        {"$ref": "#/components/schemas/B", "description": "Of this.", "type": ["string", "null"]}
    )
    reference = {"$ref": "#/components/schemas/B"}
    assert made == {"allOf": [reference], "description": "Of this.", "type": "string", "nullable": True}
    assert lowered(reference)[0] == reference


def test_the_first_example_is_kept() -> None:
    assert lowered({"examples": ["a"]}) == ({"example": "a"}, [])
    assert lowered({"examples": ["a", "b"]}) == (
        {"example": "a"},
        [("/components/schemas/A/examples", "examples")],
    )


def test_what_has_no_words_is_counted_with_its_place() -> None:
    document = {
        "openapi": "3.1.0",
        "info": {"title": "t", "version": "1", "summary": "s", "license": {"name": "x", "identifier": "MIT"}},
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "webhooks": {"a": {}},
        "paths": {"/a~b": {"$ref": "#/components/pathItems/P"}},
        "components": {
            "pathItems": {"P": {"get": {"parameters": [{"name": "q", "in": "query", "schema": True}]}}},
            "schemas": {
                "A": {"items": {"if": {}, "prefixItems": []}, "example": {"if": 1}, "x-if": {"if": 1}}
            },
        },
    }
    made, losses = as_openapi_30(document)
    assert made["info"] == {"title": "t", "version": "1", "license": {"name": "x"}}
    assert made["paths"] == {
        "/a~b": {
            "get": {
                "parameters": [{"name": "q", "in": "query", "schema": {}}],
                "responses": {"default": {"description": ""}},
            }
        }
    }
    assert made["components"] == {"schemas": {"A": {"items": {}, "example": {"if": 1}, "x-if": {"if": 1}}}}
    assert made["openapi"] == "3.0.3"
    lost = [loss.pointer for loss in losses if loss.grade is Grade.LOSS]
    assert lost == ["/webhooks", "/components/schemas/A/items/if", "/components/schemas/A/items/prefixItems"]
    assert len(losses) == 7


def test_documents_of_31_are_read_as_30() -> None:
    data = b'{"openapi":"3.1.1","info":{"title":"t","version":"1"},"webhooks":{},"paths":{}}'
    found = recognise(data)
    assert (found.kind, found.documents[0]["openapi"]) == (DocumentKind.OPENAPI_3, "3.0.3")
    assert [loss.construct for loss in found.losses] == ["webhooks"]
    for version in ("3.0.1", "3.0", "30.1", 3.1, None):
        assert not is_later_than_30({"openapi": version})


@pytest.mark.parametrize("version", ["3.2.0", "3.2", "3.10.0"])
def test_later_versions_are_refused(version: str) -> None:
    with pytest.raises(InvalidDocument, match=f"OpenAPI {version} is not read"):
        recognise(b'{"openapi":"%s","info":{"title":"t","version":"1"},"paths":{}}' % version.encode())


def test_nesting_has_a_bound() -> None:
    schema: dict[str, Any] = {}
    for _ in range(5000):
        schema = {"items": schema}
    with pytest.raises(InvalidDocument, match="too deeply"):
        as_openapi_30({"openapi": "3.1.0", "components": {"schemas": {"A": schema}}})
