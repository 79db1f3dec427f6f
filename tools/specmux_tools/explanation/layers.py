"""The schemas that describe one value: its own, the component that it refers to, and those in ``allOf``.

Layers are in order of precedence: siblings of a reference precede its target.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from specmux_converters.json_values import mapping, objects, texts
from specmux_converters.references import name_in

Schema = Mapping[str, Any]
Schemas = Mapping[str, Any]
"""The components of a document, by name."""
Layers = tuple[Schema, ...]

MOST_LAYERS: Final = 64
"""Layers of one value; real schemas have three."""


def layers_of(schemas: Schemas, schema: Schema) -> Layers:
    """Every schema that describes the value, its own first; dangling and circular references add none."""
    if "$ref" not in schema and "allOf" not in schema:
        return (schema,)
    found: list[Schema] = []
    waiting: list[Schema] = [schema]
    seen: set[str] = set()
    while waiting and len(found) < MOST_LAYERS:
        current = waiting.pop(0)
        found.append(current)
        name = component_in(current)
        if name is not None and name not in seen:
            seen.add(name)
            target = schemas.get(name)
            if isinstance(target, dict):
                waiting.append(target)
        waiting += objects(current.get("allOf"))
    return tuple(found)


def component_in(schema: Schema) -> str | None:
    """The component to which the schema's own ``$ref`` refers."""
    reference = schema.get("$ref")
    return name_in(reference, "schemas") if isinstance(reference, str) else None


def components_in(layers: Layers) -> Iterator[str]:
    """The components among the layers."""
    return (name for layer in layers if (name := component_in(layer)) is not None)


def said_by(layers: Layers) -> Schema:
    """Every keyword from the first layer that has it. For properties, use ``properties_of``."""
    if len(layers) == 1:
        return layers[0]
    said: dict[str, Any] = {}
    for layer in reversed(layers):
        said.update(layer)
    return said


def properties_of(layers: Layers) -> dict[str, Schema]:
    """The properties of all layers, sorted by name."""
    found: dict[str, Schema] = {}
    for layer in layers:
        for name, schema in mapping(layer.get("properties")).items():
            if isinstance(schema, dict):
                found.setdefault(name, schema)
    return {name: found[name] for name in sorted(found)}


def required_of(layers: Layers) -> frozenset[str]:
    """The names required by any layer."""
    return frozenset(name for layer in layers for name in texts(layer.get("required")))


def element_of(schemas: Schemas, layers: Layers) -> Layers | None:
    """The layers of an array's items or a map's values; None for other types."""
    for keyword in ("items", "additionalProperties"):
        for layer in layers:
            inner = layer.get(keyword)
            if isinstance(inner, dict) and inner:
                return layers_of(schemas, inner)
    return None


def innermost(schemas: Schemas, layers: Layers) -> Layers:
    """The layers of the innermost elements, which have the fields."""
    for _ in range(MOST_LAYERS):
        if any(layer.get("properties") for layer in layers):
            return layers
        inner = element_of(schemas, layers)
        if inner is None:
            return layers
        layers = inner
    return layers
