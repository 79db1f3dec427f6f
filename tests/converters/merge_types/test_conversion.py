"""The rules one by one. Errors are worded as ``schemaconv`` words them (kube-openapi for Kubernetes 0.34)."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from specmux_converters.errors import InvalidDocument, InvalidSchemas, LimitExceeded
from specmux_converters.merge_types import to_merge_schema

DEDUCED = {"namedType": "__untyped_deduced_"}
UNTYPED = {"namedType": "__untyped_atomic_"}
ARRAY = {"type": "array", "items": {}}


def document(**schemas: Any) -> dict[str, Any]:
    return {"openapi": "3.0.0", "components": {"schemas": schemas}}


def types(**schemas: Any) -> dict[str, Any]:
    return {each.pop("name"): each for each in to_merge_schema(document(**schemas))["types"]}


def errors(**schemas: Any) -> tuple[str, ...]:
    with pytest.raises(InvalidSchemas) as caught:
        to_merge_schema(document(**schemas))
    return caught.value.errors


@pytest.mark.parametrize(
    ("schema", "atom"),
    [
        ({"type": "integer"}, {"scalar": "numeric"}),
        ({"type": "number", "format": "double"}, {"scalar": "numeric"}),
        ({"type": "boolean"}, {"scalar": "boolean"}),
        ({"type": "string", "format": "byte"}, {"scalar": "string"}),
        ({"type": "string", "format": "date-time"}, {"scalar": "untyped"}),
        ({"type": ["string"]}, {"scalar": "string"}),
        ({"type": "object"}, {"map": {"elementType": DEDUCED}}),
        ({"type": "object", "additionalProperties": False}, {"map": {}}),
        (
            {"type": "object", "additionalProperties": {"$ref": "#/x/B"}},
            {"map": {"elementType": {"namedType": "B"}}},
        ),
        (
            {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
            {"list": {"elementType": {"scalar": "string"}, "elementRelationship": "associative"}},
        ),
        (
            ARRAY
            | {
                "items": {"$ref": "#/x/B"},
                "x-kubernetes-patch-strategy": "merge",
                "x-kubernetes-patch-merge-key": "k",
            },
            {
                "list": {
                    "elementType": {"namedType": "B"},
                    "elementRelationship": "associative",
                    "keys": ["k"],
                }
            },
        ),
        ({"allOf": [{"$ref": "#/x/B"}], "type": "string"}, {"scalar": "string"}),
    ],
)
def test_atom_of_a_component(schema: dict[str, Any], atom: dict[str, Any]) -> None:
    assert types(A=schema)["A"] == atom


def test_reference_keeps_its_own_relationship_and_default() -> None:
    spec = {"allOf": [{"$ref": "#/components/schemas/B"}], "default": {}, "x-kubernetes-map-type": "atomic"}
    fields = types(A={"type": "object", "properties": {"spec": spec}})["A"]["map"]["fields"]
    assert fields == [
        {"name": "spec", "type": {"namedType": "B", "elementRelationship": "atomic"}, "default": {}}
    ]


def test_a_component_that_is_a_reference_is_skipped() -> None:
    assert types(A={"$ref": "#/components/schemas/A"}).keys() == {"__untyped_atomic_", "__untyped_deduced_"}


def test_quantity_and_raw_extension_are_known() -> None:
    found = types(
        **{
            "io.k8s.apimachinery.pkg.api.resource.Quantity": {"type": "string"},
            "io.k8s.apimachinery.pkg.runtime.RawExtension": {"type": "object"},
        }
    )
    assert found["io.k8s.apimachinery.pkg.api.resource.Quantity"] == {"scalar": "untyped"}
    assert found["io.k8s.apimachinery.pkg.runtime.RawExtension"] == found["__untyped_atomic_"]


def test_preserving_is_inherited_by_what_is_inlined_and_not_switched_off() -> None:
    inner = {"type": "object", "properties": {"a": {"type": "string"}}}
    outer = {"type": "object", "properties": {"in": inner | {"x-kubernetes-preserve-unknown-fields": False}}}
    kept = types(A=outer | {"x-kubernetes-preserve-unknown-fields": True})["A"]["map"]
    assert kept["elementType"] == kept["fields"][0]["type"]["map"]["elementType"] == DEDUCED
    assert "elementType" not in types(A=outer)["A"]["map"]["fields"][0]["type"]["map"]


def test_types_and_fields_are_sorted_and_the_input_is_left_as_it_is() -> None:
    given = document(B={"type": "object", "properties": {"b": {}, "a": {}}}, A={"type": "string"})
    before = copy.deepcopy(given)
    found = to_merge_schema(given)["types"]
    assert [each["name"] for each in found] == ["A", "B", "__untyped_atomic_", "__untyped_deduced_"]
    assert [each["name"] for each in found[1]["map"]["fields"]] == ["a", "b"]
    assert given == before


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "<nil>"),
        (True, "true"),
        (1, "1"),
        (100_000, "100000"),
        (1_234_567, "1.234567e+06"),
        (0.00001, "1e-05"),
        ("zz", "zz"),
        ([1, "a", None], "[1 a <nil>]"),
        ({"b": 1, "a": [None]}, "map[a:[<nil>] b:1]"),
    ],
)
def test_unknown_values_are_shown_as_go_does(value: Any, shown: str) -> None:
    assert errors(A={"type": "object", "x-kubernetes-map-type": value}) == (f"A: unknown map type {shown}",)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "<nil>"),
        ("name", '"name"'),
        (1.5, "1.5"),
        ({"b": 1, "a": [None]}, 'map[string]interface {}{"a":[]interface {}{interface {}(nil)}, "b":1}'),
    ],
)
def test_uninterpreted_keys_are_shown_with_their_types(value: Any, shown: str) -> None:
    keyed = ARRAY | {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": value}
    assert errors(A=keyed) == (f"A: uninterpreted map keys: {shown}",)


def test_all_errors_are_collected_with_their_place() -> None:
    nested = {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "weird"}}}
    assert errors(A={"type": "array"}, B=nested, C=ARRAY | {"x-kubernetes-list-type": "map"}) == (
        "A: `items` must be specified on arrays",
        "inlined in inlined in B: unrecognized type: 'weird'",
        "C: missing map keys",
    )


@pytest.mark.parametrize(
    ("bad", "pointer"),
    [
        ({"components": []}, "/components"),
        ({"components": {"schemas": {"a/b": 1}}}, "/components/schemas/a~1b"),
        (document(A={"type": 1}), "/components/schemas/A/type"),
        (document(A={"type": "object", "properties": []}), "/components/schemas/A/properties"),
        (document(A={"type": "array", "items": [{}]}), "/components/schemas/A/items"),
        (document(A={"properties": {"a": True}}), "/components/schemas/A/properties/a"),
    ],
)
def test_what_is_no_openapi_is_refused_with_its_place(bad: dict[str, Any], pointer: str) -> None:
    with pytest.raises(InvalidDocument) as caught:
        to_merge_schema(bad)
    assert caught.value.pointer == pointer


def test_schemas_nested_too_deeply_are_refused() -> None:
    schema: dict[str, Any] = {}
    for _ in range(5000):
        schema = {"type": "array", "items": schema}
    with pytest.raises(LimitExceeded):
        to_merge_schema(document(A=schema))
