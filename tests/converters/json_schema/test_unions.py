"""Unions in JSON Schemas, judged beside the seed's algorithm."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmux_converters.json_schema.forms import Mode
from specmux_converters.json_schema.keywords import with_unions
from specmux_tools.unions import unions_of, validate

STRICT = Mode(is_strict=True, requires=True)
BY_TYPE: dict[str, Any] = {
    "x-kubernetes-unions": [
        {
            "discriminator": "type",
            "fields": [
                {"fieldName": "a", "discriminatorValue": "A"},
                {"fieldName": "b", "discriminatorValue": "B", "optional": True},
            ],
        }
    ],
    "properties": {"type": {"type": "string", "enum": ["A", "B", "C"]}, "a": {}, "b": {}},
}
PLAIN: dict[str, Any] = {"x-kubernetes-unions": [{"fields": ["a", "b"]}], "properties": {"a": {}, "b": {}}}
MEMBER = st.sampled_from((1, None))
OBJECTS = st.fixed_dictionaries({}, optional={"type": st.sampled_from("ABC"), "a": MEMBER, "b": MEMBER})


@pytest.mark.parametrize("schema", [BY_TYPE, PLAIN], ids=["by type", "plain"])
@given(value=OBJECTS)
def test_a_schema_takes_what_the_seed_takes(schema: dict[str, Any], value: dict[str, Any]) -> None:
    (union,) = unions_of(schema)
    made = with_unions({"required": ["type"]} if schema is BY_TYPE else {}, schema, "", STRICT)
    assert jsonschema.Draft7Validator(made).is_valid(value) == (not validate(union, value))


@pytest.mark.parametrize(
    ("schema", "component", "mode"),
    [
        (BY_TYPE, "", Mode(is_strict=True, requires=False)),
        ({**BY_TYPE, "properties": {**BY_TYPE["properties"], "type": {"default": "A"}}}, "", STRICT),
        ({**BY_TYPE, "properties": {}}, "com.example.v1.Profile", STRICT),
        ({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}, "", STRICT),
    ],
)
def test_nothing_is_said_that_is_not_exact(schema: dict[str, Any], component: str, mode: Mode) -> None:
    assert with_unions({}, schema, component, mode) == {}
