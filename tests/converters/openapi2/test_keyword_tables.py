"""One table of keywords, read in both directions: each keyword comes back, or is reported with a reason."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from data.random_swagger import random_swagger
from data.written_components import written_out
from specmux_converters import convert_whole
from specmux_converters.openapi2.conversion import convert_to_v2
from specmux_converters.openapi2.schemas import ONLY_V3
from specmux_converters.swagger2.paths.operations import COPIED
from specmux_converters.swagger2.paths.parameters import KEPT, LOCATIONS, SCHEMA_KEYS
from specmux_converters.swagger2.paths.security import FLOWS
from specmux_converters.swagger2.schema.schemas import CONVERTERS

ALTERNATIVES = [{"type": "string"}, {"type": "integer"}]
SCHEMAS: dict[str, Any] = {
    **dict.fromkeys(("title", "description", "format", "pattern"), "a"),
    **dict.fromkeys(("maximum", "minimum", "multipleOf"), 1.5),
    **dict.fromkeys(("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"), 1),
    **dict.fromkeys(("uniqueItems", "readOnly", "writeOnly", "deprecated", "nullable"), True),
    "exclusiveMaximum": True,
    "exclusiveMinimum": True,
    "example": {"a": 1},
    "type": "string",
    "required": ["a"],
    "enum": ["a", 1],
    "default": "a",
    "externalDocs": {"url": "u"},
    "xml": {"name": "n", "wrapped": True},
    "properties": {"$ref": {"type": "string"}},
    "items": {"type": "string"},
    "additionalProperties": {"type": "string"},
    "allOf": ALTERNATIVES,
    "oneOf": ALTERNATIVES,
    "anyOf": ALTERNATIVES,
    "not": {"type": "string"},
    "discriminator": {"propertyName": "a"},
}
BESIDE = {"exclusiveMaximum": {"maximum": 1}, "exclusiveMinimum": {"minimum": 1}, "discriminator": {
    "properties": {"a": {"type": "string"}}, "required": ["a"]}}  # fmt: skip


def test_every_keyword_has_a_sample() -> None:
    assert SCHEMAS.keys() == CONVERTERS.keys() | {"type"}
    assert set(ONLY_V3) < SCHEMAS.keys()


@pytest.mark.parametrize("key", SCHEMAS)
def test_a_keyword_comes_back_or_is_reported(key: str) -> None:
    node = {key: SCHEMAS[key], **BESIDE.get(key, {})}
    before = whole(components={"schemas": {"S": node}})
    made = convert_to_v2(before, profile="oas")
    losses = [loss.construct.removeprefix("field ") for loss in made.losses]
    if key in ONLY_V3:
        assert key not in made.document["definitions"]["S"]
        assert losses == [key]
        return
    assert losses == []
    again = convert_whole(made.document, profile="oas")
    assert (again.document["components"], again.losses) == (before["components"], ())


FIELDS = {"name": "p", "in": "query", "description": "d", "required": True}
OPERATIONS = {
    "tags": ["a"], "summary": "s", "description": "d", "operationId": "o",
    "externalDocs": {"url": "u"}, "deprecated": True, "security": [{"k": []}],
}  # fmt: skip


def test_fields_of_parameters_and_operations_come_back() -> None:
    assert FIELDS.keys() == KEPT.keys()
    assert OPERATIONS.keys() == COPIED.keys()
    schema = {key: SCHEMAS[key] for key in sorted(SCHEMA_KEYS - {"type", "items", "enum", "default"})}
    schema |= {"type": "array", "items": {"type": "string", "enum": ["a"]}, "maximum": 1, "minimum": 1}
    parameters = [
        {**FIELDS, "in": place, "style": style, "schema": schema}
        for place, style in (("header", "simple"), ("path", "simple"), ("query", "pipeDelimited"))
    ]
    assert {parameter["in"] for parameter in parameters} == LOCATIONS
    parameters[2]["explode"] = False
    post = {**OPERATIONS, "parameters": parameters, "responses": {"200": {"description": "d"}}}
    flows = {name: {new: {**dict.fromkeys(urls, "u"), "scopes": {}}} for name, (new, urls) in FLOWS.items()}
    schemes: dict[str, Any] = {name: {"type": "oauth2", "flows": flow} for name, flow in flows.items()}
    schemes["k"] = {"type": "apiKey", "name": "n", "in": "header"}
    before = whole(paths={"/{p}": {"post": post}}, components={"securitySchemes": schemes})
    made = convert_to_v2(before, profile="oas")
    assert made.losses == ()
    assert convert_whole(made.document, profile="oas").document == before


def whole(**rest: Any) -> dict[str, Any]:
    return {"openapi": "3.0.3", "info": {"title": "t", "version": "1"}, "paths": {}, **rest}


@settings(max_examples=25)
@given(st.randoms(use_true_random=False))
def test_v3_of_any_swagger_means_the_same_after_both_directions(random: Random) -> None:
    first = convert_whole(random_swagger(random), profile="oas").document
    made = convert_to_v2(first, profile="oas")
    assert made.losses == ()
    second = convert_whole(made.document, profile="oas").document
    assert meaning(second) == meaning(first)
    assert convert_to_v2(second, profile="oas").document == made.document


def meaning(document: Any) -> Any:
    """Shared parameters and responses stand where they are used."""
    components = document.get("components", {})
    kept = {key: components[key] for key in ("schemas", "securitySchemes") if key in components}
    return {**written_out({**document, "components": {}}, components), "components": kept}
