"""One table of keywords, read in both directions: each keyword comes back, or is reported with a reason."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from data.random_swagger import random_swagger
from data.written_components import written_out
from sampling import examples
from specmux_converters import convert_whole
from specmux_converters.from_swagger2.paths.operations import COPIED
from specmux_converters.from_swagger2.paths.parameters import KEPT, LOCATIONS, SCHEMA_KEYS
from specmux_converters.from_swagger2.paths.security import FLOWS
from specmux_converters.from_swagger2.schemas import CONVERTERS
from specmux_converters.losses import pointer_to
from specmux_converters.to_swagger2.conversion import convert_to_v2
from specmux_converters.to_swagger2.schemas import ONLY_V3

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


BASE: dict[str, Any] = {
    "openapi": "3.0.3",
    "info": {"title": "t", "version": "1"},
    "servers": [{"url": "https://h/b"}],
    "paths": {
        "/a/{p}": {
            "post": {
                "parameters": [
                    {"name": "p", "in": "path", "required": True, "schema": {"type": "string"}},
                    {"name": "q", "in": "query", "schema": {"type": "string"}},
                ],
                "requestBody": {"content": {"application/json": {"schema": {"type": "object"}}}},
                "responses": {
                    "200": {
                        "description": "d",
                        "headers": {"h": {"schema": {"type": "string"}}},
                        "content": {"application/json": {"schema": {"type": "string"}}},
                    },
                    "404": {"description": "d"},
                },
            },
            "put": {
                "parameters": [{"name": "p", "in": "path", "required": True, "schema": {"type": "string"}}],
                "requestBody": {
                    "content": {
                        "multipart/form-data": {
                            "schema": {
                                "type": "object",
                                "properties": {
                                    "f": {"type": "string", "format": "binary"},
                                    "s": {"type": "string"},
                                },
                            }
                        }
                    }
                },
                "responses": {"200": {"description": "d"}},
            },
        }
    },
    "components": {
        "schemas": {"S": {"type": "object", "discriminator": {"propertyName": "k"}}},
        "securitySchemes": {
            "o": {"type": "oauth2", "flows": {"implicit": {"authorizationUrl": "u", "scopes": {}}}},
            "k": {"type": "apiKey", "in": "header", "name": "n"},
        },
    },
}
POST = ("paths", "/a/{p}", "post")
FORM = ("paths", "/a/{p}", "put", "requestBody")
MEDIA = {"application/xml": {"schema": {"type": "integer"}}}
EXAMPLES = {"examples": {"a": {"value": 1}}, "example": 1}
SERVERS = [{"url": "https://other"}]
VALUE = {"deprecated": True, "x-a": 1, **EXAMPLES, "description": "d"}
SCHEMA = {**SCHEMAS, "x-a": 1, "unknown": 1}
OBJECTS: dict[tuple[str | int, ...], dict[str, Any]] = {
    (): {"tags": [{"name": "t"}], "security": [{"k": []}], "externalDocs": {"url": "u"}, "x-a": 1, "a": 1},
    ("servers", 0): {"description": "d", "x-a": 1},
    ("paths", "/a/{p}"): {"summary": "s", "description": "d", "servers": SERVERS, "x-a": 1,
        "trace": {"responses": {}},
    },
    POST: {**OPERATIONS, "callbacks": {"c": {}}, "servers": SERVERS, "x-a": 1, "a": 1},
    (*POST, "parameters", 0): {**VALUE, "style": "matrix"},
    (*POST, "parameters", 1): {
        **VALUE, "style": "deepObject", "allowReserved": True, "allowEmptyValue": True, "required": True,
    },
    (*POST, "parameters", 1, "schema"): SCHEMAS,
    (*POST, "requestBody"): {"description": "d", "required": True, "x-a": 1, "a": 1},
    (*POST, "requestBody", "content"): MEDIA,
    (*POST, "requestBody", "content", "application/json"): {**EXAMPLES, "encoding": {"a": {}}, "x-a": 1},
    (*POST, "responses"): {"4XX": {"description": "d"}, "x-a": 1},
    (*POST, "responses", "200"): {"links": {"l": {}}, "x-a": 1, "a": 1},
    (*POST, "responses", "200", "content"): MEDIA,
    (*POST, "responses", "404"): {"content": MEDIA},
    (*POST, "responses", "200", "content", "application/json"): {**EXAMPLES, "x-a": 1},
    (*POST, "responses", "200", "headers", "h"): {**VALUE, "required": True},
    (*POST, "responses", "200", "headers", "h", "schema"): SCHEMAS,
    FORM: {"description": "d", "required": True, "x-a": 1},
    (*FORM, "content"): MEDIA | {"application/x-www-form-urlencoded": {"schema": {"type": "integer"}}},
    (*FORM, "content", "multipart/form-data"): {
        **EXAMPLES, "x-a": 1, "encoding": {"s": {"contentType": "text/plain"}, "other": {"style": "form"}},
    },
    (*FORM, "content", "multipart/form-data", "schema"): {
        **SCHEMA, "type": "object", "properties": {"f": {"type": "string"}}, "required": ["s", "other"],
    },
    (*FORM, "content", "multipart/form-data", "schema", "properties", "s"): SCHEMAS,
    (*FORM, "content", "multipart/form-data", "schema", "properties", "f"): SCHEMA,
    ("components",): {
        "parameters": {"P": {"name": "p", "in": "query"}}, "responses": {"R": {}}, "examples": {"E": {}},
        "requestBodies": {"B": {}}, "headers": {"H": {}}, "links": {"L": {}}, "callbacks": {"C": {}},
    },
    ("components", "schemas", "S", "discriminator"): {"mapping": {"a": "#/components/schemas/S"}, "x-a": 1},
    ("components", "securitySchemes"): {
        "i": {"type": "openIdConnect", "openIdConnectUrl": "u"}, "b": {"type": "http", "scheme": "bearer"},
        "c": {"type": "apiKey", "in": "cookie", "name": "n"},
    },
    ("components", "securitySchemes", "o"): {"description": "d", "x-a": 1, "a": 1},
    ("components", "securitySchemes", "o", "flows"): {
        "password": {"tokenUrl": "u", "scopes": {}}, "x-a": 1,
    },
    ("components", "securitySchemes", "o", "flows", "implicit"): {"refreshUrl": "u", "x-a": 1},
}  # fmt: skip


@pytest.mark.parametrize(
    ("place", "key", "value"),
    [(place, key, value) for place, fields in OBJECTS.items() for key, value in fields.items()],
)
def test_a_field_comes_back_or_is_reported(place: tuple[str | int, ...], key: str, value: Any) -> None:
    before = copy.deepcopy(BASE)
    at(before, place).update({key: value, **BESIDE.get(key, {})})
    made = convert_to_v2(before, profile="oas")
    again = convert_whole(made.document, profile="oas").document
    if at(again, place).get(key) != value:
        wanted = pointer_to(*place, key)
        assert [loss for loss in made.losses if loss.pointer.startswith(wanted)], made.losses


def test_the_document_without_further_fields_comes_back() -> None:
    made = convert_to_v2(BASE, profile="oas")
    assert (made.losses, convert_whole(made.document, profile="oas").document) == ((), BASE)


def at(node: Any, place: tuple[str | int, ...]) -> dict[str, Any]:
    for step in place:
        node = node[step]
    return node  # type: ignore[no-any-return]


def whole(**rest: Any) -> dict[str, Any]:
    return {"openapi": "3.0.3", "info": {"title": "t", "version": "1"}, "paths": {}, **rest}


@examples(25)
@given(st.randoms(use_true_random=False))
def test_v3_of_any_swagger_means_the_same_after_both_directions(random: Random) -> None:
    first = convert_whole(random_swagger(random), profile="oas").document
    made = convert_to_v2(first, profile="oas")
    losses = {loss.construct for loss in made.losses}
    assert losses <= {"shared object", "mapping"}  # one that no operation uses; of names that were changed
    assume("mapping" not in losses)
    second = convert_whole(made.document, profile="oas").document
    assert meaning(second) == meaning(first)
    assert convert_to_v2(second, profile="oas").document == made.document


def meaning(document: Any) -> Any:
    """Shared parameters and responses stand where they are used."""
    components = document.get("components", {})
    kept = {key: components[key] for key in ("schemas", "securitySchemes") if key in components}
    return {**written_out({**document, "components": {}}, components), "components": kept}
