"""What a schema becomes, and which schemas are refused."""

from __future__ import annotations

from typing import Any

import pytest

from converters.crd.widgets import of_spec
from specmux_converters.crd.structural import publish_schema
from specmux_converters.errors import InvalidDocument

EITHER = [{"type": "integer"}, {"type": "string"}]
META_NAMES = {"apiVersion", "kind", "metadata"}
TEXT = {"type": "string"}


def published(spec: Any) -> Any:
    return publish_schema(of_spec(spec))["properties"]["spec"]


def test_root_gets_the_fields_of_every_object() -> None:
    root = publish_schema({"type": "object", "properties": {"kind": TEXT, "metadata": {"type": "object"}}})
    assert root["properties"].keys() == META_NAMES
    assert root["properties"]["metadata"]["allOf"] == [
        {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
    ]
    assert "REST resource" in root["properties"]["kind"]["description"]


@pytest.mark.parametrize(
    ("keyword", "value"),
    [
        ("description", "d"), ("title", "t"), ("format", "int32"), ("nullable", True), ("pattern", "^a+$"),
        ("maximum", 0), ("minimum", -1.5), ("multipleOf", 2), ("exclusiveMaximum", True),
        ("exclusiveMinimum", True), ("maxLength", 0), ("minLength", 1), ("maxItems", 3), ("minItems", 0),
        ("uniqueItems", True), ("maxProperties", 3), ("minProperties", 0), ("enum", [None, {"a": 1}]),
        ("required", ["a"]), ("default", ""), ("default", 0), ("default", False), ("default", {}),
        ("x-kubernetes-preserve-unknown-fields", True), ("x-kubernetes-list-map-keys", ["a"]),
        ("x-kubernetes-list-type", "map"), ("x-kubernetes-list-type", ""),
        ("x-kubernetes-map-type", "atomic"),
        ("additionalProperties", True), ("additionalProperties", False), ("additionalProperties", TEXT),
        ("items", TEXT), ("example", {"a": 1}), ("externalDocs", {"url": "https://example.com"}),
        ("properties", {"default": TEXT, "$ref": TEXT}), ("not", {}), ("oneOf", [{}]),
    ],
)  # fmt: skip
def test_keyword_is_kept(keyword: str, value: Any) -> None:
    assert published({"type": "object", keyword: value}) == {"type": "object", keyword: value}


@pytest.mark.parametrize(
    ("keyword", "value"),
    [
        ("description", ""), ("title", ""), ("format", ""), ("pattern", ""), ("nullable", False),
        ("uniqueItems", False), ("exclusiveMaximum", False), ("required", []), ("enum", []), ("allOf", []),
        ("properties", {}), ("default", None), ("maximum", None), ("properties", None), ("items", None),
        ("items", True), ("items", []), ("x-kubernetes-embedded-resource", False), ("$ref", ""), ("id", ""),
        ("x-kubernetes-int-or-string", False), ("x-kubernetes-validations", []), ("definitions", {}),
        ("x-other", 1), ("readOnly", True), ("additionalItems", None), ("x-kubernetes-list-type", None),
    ],
)  # fmt: skip
def test_keyword_that_says_nothing_is_dropped(keyword: str, value: Any) -> None:
    assert published({"type": "object", keyword: value}) == {"type": "object"}


def test_rules_are_written_as_upstream_does() -> None:
    rules = [{"rule": "self > 1", "message": "", "reason": "Invalid", "optionalOldSelf": False, "x": 1}, {}]
    assert published({"type": "integer", "x-kubernetes-validations": rules})["x-kubernetes-validations"] == [
        {"rule": "self > 1", "reason": "Invalid", "optionalOldSelf": False},
        {"rule": ""},
    ]


@pytest.mark.parametrize(
    ("value", "written"),
    [(2**53, 2**53), (2**63 - 1, 9223372036854776000), (2**64 - 1, 2.0**64), (1e20, 1e20), (-1e19, -1e19),
     (1.0, 1), (1e30, 1e30), (0.5, 0.5)],
)  # fmt: skip
def test_bounds_are_doubles_as_go_writes_them(value: float, written: float) -> None:
    result = published({"type": "number", "maximum": value})["maximum"]
    assert (result, type(result)) == (written, type(written))


@pytest.mark.parametrize(
    ("value", "written"),
    [(1.0, 1), (-0.0, 0), (1e3, 1000), (0.1, 0.1), (2**53 + 1, 2**53 + 1), (-(2**63), -(2**63)),
     (2**63, 9223372036854776000), (2**64, 2.0**64), (True, True), ("1.0", "1.0"), ([1.0, [2.0]], [1, [2]]),
     ({"a": {"b": 3.0, "c": None}}, {"a": {"b": 3, "c": None}})],
)  # fmt: skip
def test_numbers_in_defaults_and_enums_are_as_go_writes_them(value: Any, written: Any) -> None:
    node = published({"type": "object", "default": value, "enum": [value]})
    assert (repr(node["default"]), repr(node["enum"])) == (repr(written), repr([written]))


def test_default_that_fits_in_no_double_is_refused() -> None:
    with pytest.raises(InvalidDocument) as refusal:
        published({"type": "object", "default": {"a": [10**400]}})
    assert refusal.value.pointer == "/properties/spec/default"


@pytest.mark.parametrize("keyword", ["required", "x-kubernetes-list-map-keys"])
def test_null_among_texts_is_an_empty_text(keyword: str) -> None:
    assert published({"type": "object", keyword: [None, "a"]})[keyword] == ["", "a"]


@pytest.mark.parametrize(
    ("said", "unfolded"),
    [
        ({}, {"anyOf": EITHER}),
        ({"anyOf": EITHER}, {"anyOf": EITHER}),
        ({"anyOf": [{"pattern": "a"}]}, {"anyOf": [{"pattern": "a"}], "allOf": [{"anyOf": EITHER}]}),
        ({"allOf": [{"anyOf": EITHER}]}, {"allOf": [{"anyOf": EITHER}]}),
        (
            {"allOf": [{"pattern": "a"}], "anyOf": [{"pattern": "b"}]},
            {"allOf": [{"anyOf": EITHER}, {"pattern": "a"}], "anyOf": [{"pattern": "b"}]},
        ),
    ],
)
def test_int_or_string_is_unfolded(said: Any, unfolded: Any) -> None:
    assert published({"x-kubernetes-int-or-string": True, **said}) == {
        "x-kubernetes-int-or-string": True,
        **unfolded,
    }


def test_either_is_allowed_without_the_extension() -> None:
    assert published({"type": "string", "anyOf": EITHER}) == {"type": "string", "anyOf": EITHER}


@pytest.mark.parametrize("where", ["properties", "items", "additionalProperties", "root"])
def test_embedded_resource_gets_its_fields(where: str) -> None:
    embedded: dict[str, Any] = {
        "type": "object",
        "x-kubernetes-embedded-resource": True,
        "x-kubernetes-preserve-unknown-fields": True,
        "required": ["apiVersion", "spec"],
    }
    match where:
        case "root":
            node = publish_schema(embedded)
        case "items":
            node = published({"type": "array", "items": embedded})["items"]
        case "properties":
            node = published({"type": "object", "properties": {"a": embedded}})["properties"]["a"]
        case _:
            node = published({"type": "object", "additionalProperties": embedded})["additionalProperties"]
    assert node["properties"].keys() == META_NAMES
    assert node["properties"]["kind"]["description"].startswith("kind is a string value")
    assert node["required"] == ["apiVersion", "spec", "kind"]
    assert embedded["required"] == ["apiVersion", "spec"]


NESTED = "/properties/spec/anyOf/0"


@pytest.mark.parametrize(
    ("spec", "pointer"),
    [
        ({}, "/properties/spec/type"),
        (None, "/properties/spec/type"),
        ({"type": "null"}, "/properties/spec/type"),
        ({"type": "array"}, "/properties/spec/items"),
        ({"type": "array", "items": [TEXT]}, "/properties/spec/items"),
        ({"type": "array", "items": {}}, "/properties/spec/items/type"),
        ({"type": "object", "additionalProperties": {}}, "/properties/spec/additionalProperties/type"),
        ({"type": "string", "pattern": "(?=a)"}, "/properties/spec/pattern"),
        ({"type": "object", "x-kubernetes-preserve-unknown-fields": False},
         "/properties/spec/x-kubernetes-preserve-unknown-fields"),
        ({"x-kubernetes-int-or-string": True, "x-kubernetes-preserve-unknown-fields": True},
         "/properties/spec/x-kubernetes-preserve-unknown-fields"),
        ({"x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
         "/properties/spec/type"),
        ({"type": "object", "x-kubernetes-embedded-resource": True}, "/properties/spec/properties"),
        ({"type": "object", "x-kubernetes-embedded-resource": True, "properties": {"kind": {}}},
         "/properties/spec/properties/kind/type"),
        ({"type": "object", "$ref": "#/a"}, "/properties/spec/$ref"),
        ({"type": "object", "definitions": {"a": {}}}, "/properties/spec/definitions"),
        ({"type": "object", "patternProperties": {"a": {}}}, "/properties/spec/patternProperties"),
        ({"type": "object", "additionalItems": False}, "/properties/spec/additionalItems"),
        ({"type": "object", "anyOf": [{"type": "object"}]}, f"{NESTED}/type"),
        ({"type": "object", "anyOf": [{"additionalProperties": True}]}, f"{NESTED}/additionalProperties"),
        ({"type": "object", "anyOf": [{"not": {"default": 0}}]}, f"{NESTED}/not/default"),
        ({"type": "object", "anyOf": [{"properties": {"metadata": {}}}]}, f"{NESTED}/properties/metadata"),
        ({"type": "string", "allOf": [{"maxLength": 1}, {"anyOf": EITHER}]},
         "/properties/spec/allOf/1/anyOf/0/type"),
        ({"type": 1}, "/properties/spec/type"),
        ({"type": "string", "maxLength": "1"}, "/properties/spec/maxLength"),
        ({"type": "string", "maxLength": 1.5}, "/properties/spec/maxLength"),
        ({"type": "string", "minLength": 2**63}, "/properties/spec/minLength"),
        ({"type": "number", "maximum": 10**400}, "/properties/spec/maximum"),
        ({"type": "number", "maximum": True}, "/properties/spec/maximum"),
        ({"type": "object", "required": [1]}, "/properties/spec/required"),
        ({"type": "object", "properties": []}, "/properties/spec/properties"),
        ({"type": "object", "properties": {"a/b": 1}}, "/properties/spec/properties/a~1b"),
        ({"type": "object", "allOf": {}}, "/properties/spec/allOf"),
        ({"type": "object", "nullable": "yes"}, "/properties/spec/nullable"),
        ({"type": "object", "x-kubernetes-validations": [1]}, "/properties/spec/x-kubernetes-validations"),
        ([], "/properties/spec"),
    ],
)  # fmt: skip
def test_schema_that_is_not_structural_is_refused_where_it_is_not(spec: Any, pointer: str) -> None:
    with pytest.raises(InvalidDocument) as refusal:
        published(spec)
    assert refusal.value.pointer == pointer


@pytest.mark.parametrize(
    ("root", "pointer"),
    [
        ({"type": "string"}, "/type"),
        ({"properties": {}}, "/type"),
        ({"type": "object", "additionalProperties": True}, "/additionalProperties"),
        ({"type": "object", "properties": {"kind": {"type": "integer"}}}, "/properties/kind/type"),
        ({"type": "object", "properties": {"metadata": TEXT}}, "/properties/metadata/type"),
        (of_spec({"type": "object"}) | {"anyOf": [{"properties": {"status": {}}}]},
         "/anyOf/0/properties/status"),
        (of_spec({"type": "object"}) | {"not": {"properties": {"spec": {"items": {}}}}},
         "/not/properties/spec/items"),
    ],
)  # fmt: skip
def test_root_has_rules_of_its_own(root: Any, pointer: str) -> None:
    with pytest.raises(InvalidDocument) as refusal:
        publish_schema(root)
    assert refusal.value.pointer == pointer


@pytest.mark.parametrize(
    ("metadata", "is_allowed"),
    [
        ({"properties": {"name": {"type": "string", "maxLength": 9}}}, True),
        ({"properties": {"name": TEXT, "generateName": TEXT}}, True),
        ({"default": {}}, True),
        ({"properties": {"labels": {"type": "object"}}}, False),
        ({"description": "d"}, False),
        ({"required": ["name"]}, False),
    ],
)
def test_metadata_of_the_root_restricts_names_alone(metadata: Any, is_allowed: bool) -> None:
    root = {"type": "object", "properties": {"metadata": {"type": "object", **metadata}}}
    if is_allowed:
        assert publish_schema(root)["properties"]["metadata"].keys() == {"description", "allOf"}
    else:
        with pytest.raises(InvalidDocument, match="name and generateName"):
            publish_schema(root)


def test_nested_field_below_the_root_needs_no_structure() -> None:
    spec = {"type": "object", "oneOf": [{"properties": {"a": {"minimum": 1}}}]}
    assert published(spec) == spec
