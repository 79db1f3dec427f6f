"""Skeletons: YAML with what is required, and no field that is not there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml

from data.explained_documents import KIND, bed, release_kinds, schema_of
from specmux_converters.references import schemas_of
from specmux_converters.resources import GroupVersionKind
from specmux_tools.explanation.layers import element_of, layers_of, properties_of, said_by
from specmux_tools.explanation.skeleton import MOST_LINES, example, example_objects, skeleton

STRING = {"type": "string"}
CONTAINERS = {
    "type": "array",
    "items": {"type": "object", "required": ["name"], "properties": {"name": STRING, "image": STRING}},
}


def written(**spec: Any) -> str:
    required = [name for name, schema in spec.items() if schema.pop("_", False)]
    document = bed(**spec)
    schema_of(document)["properties"]["spec"]["required"] = required
    return skeleton(document, KIND, schema_of(document))


HEAD = 'apiVersion: garden.example.org/v1\nkind: Bed\nmetadata:\n  name: ""\n'


def test_what_nothing_requires_is_left_out() -> None:
    assert written(a={"type": "string"}) == f"{HEAD}spec: {{}}\n"


@pytest.mark.parametrize(
    ("schema", "line"),
    [
        ({"type": "string"}, '""  # required'),
        ({"type": "integer"}, "0  # required"),
        ({"type": "integer", "minimum": 3}, "3  # required"),
        ({"type": "boolean"}, "false  # required"),
        ({"type": "boolean", "default": True}, "true  # required"),
        ({"type": "array", "items": {"type": "string"}}, "[]  # required"),
        ({"type": "array", "minItems": 1, "items": {"type": "string"}}, '[""]  # required'),
        ({"type": "object"}, "{}  # required"),
        ({"type": "string", "enum": ["on", "off"]}, '"on"  # required; one of "on", "off"'),
        ({"type": "string", "enum": ["b", "a"], "default": "a"}, "a  # required; one of b, a"),
        ({"type": "string", "format": "date-time"}, '"1970-01-01T00:00:00Z"  # required'),
        ({"x-kubernetes-int-or-string": True}, "0  # required"),
    ],
)
def test_value_of_a_required_field(schema: dict[str, Any], line: str) -> None:
    assert written(a={**schema, "_": True}) == f"{HEAD}spec:\n  a: {line}\n"


def test_fields_of_elements_are_indented() -> None:
    soil = {"$ref": "#/components/schemas/Soil"}
    assert written(layers={"type": "array", "items": soil, "_": True}) == (
        f"{HEAD}spec:\n  layers:  # required\n  - acidity: 3  # required\n"
    )


def test_one_of_several_fields_is_written_and_all_are_named() -> None:
    document = bed(a={"type": "string"}, b={"type": "string"})
    schema_of(document)["properties"]["spec"]["oneOf"] = [{"required": ["b"]}, {"required": ["a"]}]
    text = skeleton(document, KIND, schema_of(document))
    assert text == f'{HEAD}spec:\n  b: ""  # one of b, a\n'


@pytest.mark.parametrize(
    ("discriminator", "value", "member"),
    [
        ({"enum": ["B", "A"]}, "B", "b"),
        ({"enum": ["C", "A", "B"]}, "C", ""),
        ({}, "A", "a"),
        ({"default": "B"}, "B", "b"),
    ],
)
def test_the_member_that_the_discriminator_asks_for_is_written(
    discriminator: dict[str, Any], value: str, member: str
) -> None:
    document = bed(type={"type": "string", **discriminator}, a={"type": "string"}, b={"type": "string"})
    union = {"discriminator": "type", "fields-to-discriminateBy": {"a": "A", "b": "B"}}
    spec = schema_of(document)["properties"]["spec"]
    spec |= {"required": ["type"], "x-kubernetes-unions": [union]}
    text = skeleton(document, KIND, schema_of(document))
    assert yaml.safe_load(text)["spec"] == {"type": value, **({member: ""} if member else {})}
    assert "required; by type: A takes a, B takes b" in text


def unknown_fields(schemas: Any, schema: Any, value: Any, path: str = "") -> list[str]:
    layers = layers_of(schemas, schema)
    element = element_of(schemas, layers)
    if isinstance(value, list):
        inner = element[0] if element else {}
        return [each for item in value for each in unknown_fields(schemas, inner, item, f"{path}[]")]
    if not isinstance(value, dict):
        return []
    properties = properties_of(layers)
    if not properties:
        return []
    found = [f"{path}.{name}" for name in value if name not in properties]
    for name in value.keys() & properties.keys():
        found += unknown_fields(schemas, properties[name], value[name], f"{path}.{name}")
    return found


def missing_fields(schemas: Any, schema: Any, value: Any) -> list[str]:
    said = said_by(layers_of(schemas, schema))
    names = said.get("required") or [] if isinstance(value, dict) else []
    return [name for name in names if name not in value]


def test_every_kind_of_the_release_has_one_without_unknown_fields() -> None:
    checked = 0
    for found in release_kinds():
        text = skeleton(found.document, found.kind, found.schema)
        value = yaml.safe_load(text)
        schemas = schemas_of(found.document)
        assert unknown_fields(schemas, found.schema, value) == [], found.kind
        assert missing_fields(schemas, found.schema, value) == [], found.kind
        assert value.get("kind") == found.kind.kind or "kind" not in properties_of((found.schema,))
        checked += 1
    assert checked > 230


def test_components_that_fan_out_end() -> None:
    document = bed(a={"$ref": "#/components/schemas/L0"})
    schema_of(document)["properties"]["spec"]["required"] = ["a"]
    for level in range(30):
        below = {"$ref": f"#/components/schemas/L{level + 1}"}
        document["components"]["schemas"][f"L{level}"] = {
            "type": "object",
            "required": ["a", "b"],
            "properties": {"a": below, "b": below},
        }
    document["components"]["schemas"]["L30"] = {"type": "string"}
    text = skeleton(document, KIND, schema_of(document))
    assert MOST_LINES / 2 < text.count("\n") <= MOST_LINES + 1
    assert yaml.safe_load(text)["kind"] == "Bed"


def test_micro_time_has_six_digits() -> None:
    name = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime"
    document = bed(a={"allOf": [{"$ref": f"#/components/schemas/{name}"}]})
    schema_of(document)["properties"]["spec"]["required"] = ["a"]
    document["components"]["schemas"][name] = {"type": "string", "format": "date-time"}
    text = skeleton(document, KIND, schema_of(document))
    assert yaml.safe_load(text)["spec"] == {"a": "1970-01-01T00:00:00.000000Z"}


def test_every_kind_of_the_release_has_an_example_without_unknown_fields(
    tally: Callable[[str, int], None],
) -> None:
    checked = 0
    for found in release_kinds():
        value = yaml.safe_load(example(found.document, found.kind, found.schema))
        schemas = schemas_of(found.document)
        assert unknown_fields(schemas, found.schema, value) == [], found.kind
        assert missing_fields(schemas, found.schema, value) == [], found.kind
        checked += 1
    assert {name.rpartition(" ")[2] for name in example_objects()} <= {
        found.kind.kind for found in release_kinds()
    }
    tally("examples of kinds without an unknown field", checked)


def test_example_of_a_pod_has_an_image() -> None:
    pod = {"type": "object", "required": ["containers"], "properties": {"containers": CONTAINERS}}
    schema: dict[str, Any] = {"type": "object", "properties": {"kind": STRING, "metadata": {}, "spec": pod}}
    text = example({"components": {"schemas": {}}}, GroupVersionKind("", "v1", "Pod"), schema)
    assert text == (
        "kind: Pod\nmetadata:\n  name: example\nspec:\n  containers:\n  - name: app\n    image: nginx\n"
    )


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"type": "string"}, "example"),
        ({"type": "string", "pattern": "^[0-9]+h$"}, "1h"),
        ({"type": "string", "pattern": "^https://"}, "https://example.com"),
        ({"type": "string", "format": "uri"}, "https://example.com"),
        ({"type": "string", "format": "byte"}, "ZXhhbXBsZQ=="),
        ({"type": "string", "minLength": 9}, "example.com"),
        ({"type": "string", "maxLength": 2}, "1h"),
        ({"type": "string", "pattern": "^nothing fits$"}, "example"),
        ({"type": "array", "minItems": 1, "items": {"type": "string"}}, ["example"]),
    ],
)
def test_text_of_an_example_is_one_that_its_schema_takes(schema: dict[str, Any], value: Any) -> None:
    document = bed(a=schema)
    schema_of(document)["properties"]["spec"]["required"] = ["a"]
    assert yaml.safe_load(example(document, KIND, schema_of(document)))["spec"] == {"a": value}
