"""Schemas and security of Swagger 2.0, construct by construct."""

from __future__ import annotations

from typing import Any

import pytest

from converters.from_swagger2.swaggers import (
    BOTH,
    PET,
    PET3,
    constructs,
    parameter,
    schema,
    swagger,
    whole_schema,
)
from specmux_converters.from_swagger2.conversion import convert_whole
from specmux_converters.from_swagger2.reading.source import Profile


@BOTH
@pytest.mark.parametrize(
    ("node", "expected", "lost"),
    [
        ({"allOf": []}, {}, []),
        ({"anyOf": []}, {}, ["anyOf"]),
        ({"oneOf": []}, {}, ["oneOf"]),
        ({"multipleOf": 0}, {}, ["multipleOf"]),
        ({"multipleOf": -1.5}, {}, ["multipleOf"]),
        ({"maxLength": -1}, {}, ["maxLength"]),
        ({"minItems": 0}, {"minItems": 0}, []),
        ({"maxItems": 3.0}, {"maxItems": 3}, []),
        ({"exclusiveMaximum": True}, {}, ["exclusiveMaximum"]),
        ({"exclusiveMinimum": False, "maximum": 1}, {"maximum": 1}, ["exclusiveMinimum"]),
    ],
)
def test_keyword_that_json_schema_does_not_allow_is_left_out(
    profile: Profile, node: Any, expected: Any, lost: list[str]
) -> None:
    whole = whole_schema(node, profile=profile)
    assert repr(whole.document["components"]["schemas"]["S"]) == repr(expected)
    assert [loss.pointer for loss in whole.losses] == [f"/definitions/S/{key}" for key in lost]
    found = parameter(profile, **{"type": "integer", **node})["schema"]
    assert found == {"type": "integer", **expected}


@BOTH
def test_reference_that_leads_back_to_itself_is_kept_as_an_extension(profile: Profile) -> None:
    others = {
        "A": {"$ref": "#/definitions/B"},
        "B": {"$ref": "#/definitions/A"},
        "C": {"$ref": "#/definitions/A"},
        "D": {"properties": {"p": {"$ref": "#/definitions/E/properties/p"}}},
        "E": {"properties": {"p": {"$ref": "#/definitions/D/properties/p"}}},
    }
    whole = whole_schema({"$ref": "#/definitions/S"}, profile=profile, **others)
    schemas = whole.document["components"]["schemas"]
    assert {name: node for name, node in schemas.items() if name not in "DE"} == {
        "S": {"x-unresolved-ref": "#/definitions/S"},
        "A": {"x-unresolved-ref": "#/definitions/B"},
        "B": {"x-unresolved-ref": "#/definitions/A"},
        "C": {"$ref": "#/components/schemas/A"},
        "D.properties.p": {"x-unresolved-ref": "#/definitions/E/properties/p"},
        "E.properties.p": {"x-unresolved-ref": "#/definitions/D/properties/p"},
    }
    assert {construct for _, construct in constructs(whole)} == {"circular $ref"}
    assert len(whole.losses) == 5


@BOTH
@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ({"discriminator": "kind"}, {"discriminator": {"propertyName": "kind"}}),
        ({"type": "string", "x-nullable": True}, {"type": "string", "x-nullable": True, "nullable": True}),
        ({"type": "string", "x-nullable": False}, {"type": "string", "x-nullable": False}),
        ({"type": ["string", "null"]}, {"type": "string", "nullable": True}),
        ({"type": ["string", "integer"]}, {"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        ({"type": ["null"]}, {"nullable": True, "enum": [None]}),
        ({"required": []}, {}),
        ({"properties": None, "items": None, "type": "array"}, {"type": "array", "items": {}}),
        ({"additionalProperties": True}, {"additionalProperties": True}),
        ({"additionalProperties": PET}, {"additionalProperties": PET3}),
        ({"allOf": [PET, {"properties": {"a": PET}}]}, {"allOf": [PET3, {"properties": {"a": PET3}}]}),
        ({"anyOf": [PET], "oneOf": [PET], "not": PET}, {"anyOf": [PET3], "oneOf": [PET3], "not": PET3}),
        ({**PET, "description": "d"}, {"description": "d", "allOf": [PET3]}),
        ({**PET, "x-a": 1, "allOf": [{"title": "t"}]}, {"x-a": 1, "allOf": [PET3, {"title": "t"}]}),
        ({"items": {**PET, "default": {}}}, {"items": {"default": {}, "allOf": [PET3]}}),
        ({"exclusiveMinimum": True, "minimum": 1}, {"exclusiveMinimum": True, "minimum": 1}),
        ({"readOnly": True, "example": {"$ref": "no"}}, {"readOnly": True, "example": {"$ref": "no"}}),
        ({"xml": {"name": "n", "x-x": 1}}, {"xml": {"name": "n", "x-x": 1}}),
        ({"externalDocs": {"url": "u", "x-x": 1}}, {"externalDocs": {"url": "u", "x-x": 1}}),
        (
            {"x-kubernetes-unions": [{"discriminator": "k"}]},
            {"x-kubernetes-unions": [{"discriminator": "k"}]},
        ),
        ({"enum": [{"$ref": "#/definitions/S"}]}, {"enum": [{"$ref": "#/definitions/S"}]}),
        ({"default": {"$ref": "#/definitions/S"}}, {"default": {"$ref": "#/definitions/S"}}),
    ],
)
def test_schema(profile: Profile, node: Any, expected: Any) -> None:
    assert schema(node, profile=profile) == expected


@BOTH
def test_properties_may_be_called_anything(profile: Profile) -> None:
    """JSONSchemaProps, VolumeNodeAffinity.required, LimitRangeItem.default."""
    names = (
        "$ref",
        "default",
        "required",
        "enum",
        "items",
        "properties",
        "discriminator",
        "x-a",
        "type",
        "allOf",
    )
    found = schema({"properties": dict.fromkeys(names, PET), "required": ["$ref"]}, profile=profile)
    assert found == {"properties": dict.fromkeys(names, PET3), "required": ["$ref"]}


@BOTH
def test_tuple_items_are_any_of_them(profile: Profile) -> None:
    whole = whole_schema({"type": "array", "items": [PET, {"type": "string"}]}, profile=profile)
    items = whole.document["components"]["schemas"]["S"]["items"]
    assert items == {"anyOf": [PET3, {"type": "string"}], "x-items": [PET3, {"type": "string"}]}
    assert constructs(whole) == [("/definitions/S/items", "tuple items")]


def test_unknown_keyword_is_kept_as_an_extension() -> None:
    whole = whole_schema({"patternProperties": {"^a": PET}, "type": "object"})
    assert whole.document["components"]["schemas"]["S"] == {
        "type": "object",
        "x-patternProperties": {"^a": PET},
    }
    assert constructs(whole) == [("/definitions/S/patternProperties", "field patternProperties")]


def test_unknown_type_is_kept_as_an_extension() -> None:
    whole = whole_schema({"type": "any"})
    assert whole.document["components"]["schemas"]["S"] == {"x-type": "any"}
    assert constructs(whole) == [("/definitions/S/type", "type")]


@BOTH
def test_external_reference_is_kept_and_reported(profile: Profile) -> None:
    whole = whole_schema({"properties": {"a": {"$ref": "ext.json#/definitions/Z"}}}, profile=profile)
    properties = whole.document["components"]["schemas"]["S"]["properties"]
    assert properties == {"a": {"$ref": "ext.json#/definitions/Z"}}
    assert constructs(whole) == [("/definitions/S/properties/a/$ref", "external $ref")]


@BOTH
def test_dangling_reference_is_kept_as_an_extension(profile: Profile) -> None:
    whole = whole_schema({"properties": {"a": {"$ref": "#/definitions/Z", "title": "t"}}}, profile=profile)
    a = whole.document["components"]["schemas"]["S"]["properties"]["a"]
    assert a == {"title": "t", "allOf": [{"x-unresolved-ref": "#/definitions/Z"}]}
    assert constructs(whole) == [("/definitions/S/properties/a/$ref", "dangling $ref")]


@pytest.mark.parametrize("ref", ["#/definitions/a~1b", "#/definitions/a%7E1b"])
def test_keys_stay_raw_and_references_escaped_for_kubernetes(ref: str) -> None:
    whole = whole_schema({"items": {"$ref": ref}}, profile="kubernetes", **{"a/b": {"type": "string"}})
    schemas = whole.document["components"]["schemas"]
    assert schemas["a/b"] == {"type": "string"}
    assert schemas["S"]["items"] == {"$ref": ref.replace("definitions", "components/schemas")}


@BOTH
def test_reference_into_the_document_becomes_a_component(profile: Profile) -> None:
    node = {"properties": {"a": {"type": "string"}, "b": {"$ref": "#/definitions/S/properties/a"}}}
    schemas = whole_schema(node, profile=profile).document["components"]["schemas"]
    assert schemas["S"]["properties"]["b"] == {"$ref": "#/components/schemas/S.properties.a"}
    assert schemas["S.properties.a"] == {"type": "string"}


@BOTH
@pytest.mark.parametrize(
    ("node", "is_kept"),
    [
        ({"type": "string", "default": "a"}, True),
        ({"type": "string", "default": {}}, False),
        ({"type": "number", "default": "0.2"}, False),
        ({"type": "integer", "default": True}, False),
        ({"type": "integer", "default": None}, False),
        ({"type": "integer", "default": None, "x-nullable": True}, True),
        ({"enum": ["a"], "default": "b"}, False),
        ({"type": "array", "items": {"type": "string"}, "default": ["a"]}, True),
        ({"type": "array", "items": {"type": "string"}, "default": [1]}, False),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": True, "default": 1}, False),
        ({"type": "string", "maxLength": 1, "default": "ab"}, False),
        ({"type": "integer", "multipleOf": 2, "default": 4}, True),
        ({"type": "integer", "multipleOf": 2, "default": 5}, False),
        ({"type": "array", "items": [{"type": "string"}, {"type": "integer"}], "default": [1, "a"]}, True),
        ({"type": "array", "items": [{"type": "string"}], "default": ["a", 1]}, False),
        ({"type": "integer", "format": "int32", "default": 2**31 - 1}, True),
        ({"type": "integer", "format": "int32", "default": 2**31}, False),
        ({"type": "integer", "format": "int64", "default": 2**63}, False),
        ({"type": "string", "format": "int64", "default": "0"}, True),
        ({"type": "string", "format": "date", "default": "2024-02-29"}, True),
        ({"type": "string", "format": "date", "default": "2023-02-29"}, False),
        ({"type": "string", "format": "date", "default": "2023-13-01"}, False),
        ({"type": "string", "format": "date", "default": "today"}, False),
        ({"type": "string", "format": "date-time", "default": "0001-01-01T00:00:00Z"}, True),
        ({"type": "string", "format": "date-time", "default": "2020-01-01T10:00:00.5+02:00"}, True),
        ({"type": "string", "format": "date-time", "default": "2020-01-01T25:00:00Z"}, False),
        ({"type": "string", "format": "date-time", "default": ""}, False),
        ({"type": "string", "format": "byte", "default": "YWJj"}, True),
        ({"type": "string", "format": "byte", "default": "ä"}, False),
        ({"type": "string", "format": "email", "default": ""}, False),
        ({"type": "string", "format": "ipv4", "default": "10.0.0.1"}, True),
        ({"type": "string", "format": "ipv4", "default": "10.0.0.256"}, False),
        ({"type": "string", "format": "ipv6", "default": "::1"}, True),
        ({"type": "string", "format": "ipv6", "default": "1"}, False),
        ({"type": "string", "format": "uuid", "default": "1"}, False),
        ({"type": "string", "format": "of-our-own", "default": "1"}, True),
        ({"$ref": "#/definitions/Strict", "default": {}}, False),
        ({"$ref": "#/definitions/Strict", "default": {"a": 1}}, True),
        ({"allOf": [{"$ref": "#/definitions/Strict"}], "default": {}}, False),
        ({"$ref": "#/definitions/S", "default": {}}, True),
    ],
)
def test_default_that_its_schema_refuses_is_left_out(profile: Profile, node: Any, is_kept: bool) -> None:
    strict = {"type": "object", "required": ["a"]}
    whole = whole_schema({"properties": {"p": node}}, profile=profile, Strict=strict)
    assert ("default" in whole.document["components"]["schemas"]["S"]["properties"]["p"]) is is_kept
    lost = [loss.pointer for loss in whole.losses if loss.construct != "tuple items"]
    assert lost == ([] if is_kept else ["/definitions/S/properties/p/default"])


FLOW = {"authorizationUrl": "a", "tokenUrl": "t", "scopes": {"s": "t"}}


@BOTH
@pytest.mark.parametrize(
    ("node", "expected"),
    [
        ({"type": "basic"}, {"type": "http", "scheme": "basic"}),
        ({"type": "apiKey", "name": "n", "in": "header"}, {"type": "apiKey", "name": "n", "in": "header"}),
    ],
)
def test_security_scheme(profile: Profile, node: Any, expected: Any) -> None:
    about = {"description": "d", "x-s": 1}
    whole = convert_whole(swagger(securityDefinitions={"k": {**node, **about}}), profile=profile)
    assert whole.document["components"]["securitySchemes"] == {"k": {**expected, **about}}
    assert whole.losses == ()


@BOTH
@pytest.mark.parametrize(
    ("flow", "name", "urls"),
    [
        ("implicit", "implicit", ["authorizationUrl"]),
        ("password", "password", ["tokenUrl"]),
        ("application", "clientCredentials", ["tokenUrl"]),
        ("accessCode", "authorizationCode", ["authorizationUrl", "tokenUrl"]),
    ],
)
def test_oauth2_flow(profile: Profile, flow: str, name: str, urls: list[str]) -> None:
    fields = {key: FLOW[key] for key in ("scopes", *urls)}
    node = {"type": "oauth2", "flow": flow, **fields}
    whole = convert_whole(swagger(securityDefinitions={"k": node}), profile=profile)
    assert whole.document["components"]["securitySchemes"] == {
        "k": {"type": "oauth2", "flows": {name: fields}}
    }
    assert whole.losses == ()


def test_oauth2_flow_with_other_urls() -> None:
    node = {"type": "oauth2", "flow": "application", "authorizationUrl": "a", "scopes": {}}
    whole = convert_whole(swagger(securityDefinitions={"k": node}))
    flows = whole.document["components"]["securitySchemes"]["k"]["flows"]
    assert flows == {"clientCredentials": {"tokenUrl": "", "scopes": {}, "x-authorizationUrl": "a"}}
    assert constructs(whole) == [
        ("/securityDefinitions/k", "flow without tokenUrl"),
        ("/securityDefinitions/k/authorizationUrl", "field authorizationUrl"),
    ]


def test_int_or_string_and_quantity_are_recovered_for_kubernetes() -> None:
    definitions = {
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString": {"type": "string", "format": "int-or-string"},
        "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "string", "description": "q"},
    }
    document = swagger(definitions=definitions)
    int_or_string, quantity = (
        convert_whole(document, profile="kubernetes").document["components"]["schemas"][name]
        for name in definitions
    )
    assert int_or_string == {"format": "int-or-string", "oneOf": [{"type": "integer"}, {"type": "string"}]}
    assert quantity == {"description": "q", "oneOf": [{"type": "string"}, {"type": "number"}]}
    assert convert_whole(document).document["components"]["schemas"] == definitions
