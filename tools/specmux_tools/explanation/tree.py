"""The fields of a kind as a tree, of which the page is made, and its JSON: that of ``-o json`` and of the
service, without empty members.

A tree is cut at a component within itself, at a depth, and at a number of fields; ``has_more`` marks the
cuts. Fields of one component are the same objects wherever it occurs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, Final

import orjson

from specmux_converters.document import Document
from specmux_converters.json_values import objects, text
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.references import component_of, schemas_of
from specmux_converters.resources import GroupVersionKind
from specmux_tools.errors import UnknownField
from specmux_tools.explanation.field_details import Details, details_of, media_types_json
from specmux_tools.explanation.field_path import Step, format_path, similar_to
from specmux_tools.explanation.layers import (
    Layers,
    Schema,
    components_in,
    element_of,
    innermost,
    layers_of,
    properties_of,
    required_of,
    said_by,
)
from specmux_tools.explanation.text import type_of
from specmux_tools.unions import Union

MOST_FIELDS: Final = 10_000
MOST_DEPTH: Final = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    name: str
    type: str
    """The type in kubectl's notation."""
    is_required: bool
    description: str
    details: Details
    fields: tuple[Field, ...]
    """Sorted by name; for a list or map, those of the elements."""
    has_more: bool
    """Some of its fields are left out."""
    is_whole: bool
    """No field is left out at or below it."""
    size: int
    """Number of fields, including itself."""
    height: int
    """Levels of fields below it."""
    component: str
    """The component that defines its fields; "" if they are inline or absent."""


@dataclass(frozen=True, slots=True)
class FieldPlace:
    """The end of a path: the names on the way, and the schema there."""

    names: tuple[str, ...]
    schema: Schema
    is_required: bool = False


def find(document: Document, schema: Schema, steps: Sequence[Step]) -> FieldPlace:
    """Raises UnknownField, with similar names."""
    schemas = schemas_of(document)
    place = FieldPlace((), schema)
    for step in steps:
        layers: Layers | None = layers_of(schemas, place.schema)
        last = layers
        while layers is not None:
            found = properties_of(layers).get(step.name)
            if found:
                names = (*place.names, step.name)
                place = FieldPlace(names, found, is_required=step.name in required_of(layers))
                break
            last, layers = layers, element_of(schemas, layers)
        else:
            values = _value_of_map(schemas, place.schema) if step.is_quoted else {}
            if not values:
                similar = similar_to(step.name, properties_of(last or ()))
                raise UnknownField(f'field "{step.name}" does not exist', name=step.name, similar=similar)
            place = FieldPlace(place.names, values)
    return place


def tree_of(
    document: Document, place: FieldPlace, *, depth: int = MOST_DEPTH, max_fields: int = MOST_FIELDS
) -> Field:
    """The field at ``place`` with ``depth`` levels of fields."""
    grower = _Grower(document, schemas_of(document), max_fields)
    name = place.names[-1] if place.names else ""
    return grower.grow(name, place.schema, place.is_required, depth, frozenset())


@dataclass(frozen=True, slots=True)
class _Below:
    """The fields below one field."""

    fields: tuple[Field, ...] = ()
    has_more: bool = False

    @property
    def is_whole(self) -> bool:
        return not self.has_more and all(each.is_whole for each in self.fields)

    @property
    def size(self) -> int:
        return sum(each.size for each in self.fields)

    @property
    def height(self) -> int:
        return max((1 + each.height for each in self.fields), default=0)


_NOTHING: Final = _Below()
_CUT: Final = _Below((), True)


@dataclass(slots=True)
class _Grower:
    document: Document
    schemas: Schema
    left: int
    """Number of fields that may still be created."""
    whole: dict[str, _Below] = field(default_factory=dict)
    """Complete fields by component: where nothing is cut, no component contains itself."""

    def grow(self, name: str, schema: Schema, is_required: bool, depth: int, above: frozenset[str]) -> Field:
        layers = layers_of(self.schemas, schema)
        said = said_by(layers)
        inner = innermost(self.schemas, layers)
        below = self.below(layers, inner, depth, above)
        return Field(
            name=name,
            type=type_of(self.document, schema),
            is_required=is_required,
            description=text(said.get("description")),
            details=details_of(
                said, {} if inner is layers else said_by(inner), next(components_in(inner), "")
            ),
            fields=below.fields,
            has_more=below.has_more,
            is_whole=below.is_whole,
            size=1 + below.size,
            height=below.height,
            component=_component_of(inner) or "",
        )

    def below(self, layers: Layers, inner: Layers, depth: int, above: frozenset[str]) -> _Below:
        properties = properties_of(inner)
        if not properties:
            return _NOTHING
        component = _component_of(inner)
        known = self.whole.get(component) if component is not None else None
        if known is not None and known.height <= depth and known.size <= self.left:
            self.left -= known.size
            return known
        within = frozenset((*components_in(layers), *components_in(inner)))
        if depth <= 0 or within & above:
            return _CUT
        grown = self.fields(properties, required_of(inner), depth - 1, above | within)
        if component is not None and grown.is_whole:
            self.whole[component] = grown
        return grown

    def fields(
        self, properties: dict[str, Schema], required: frozenset[str], depth: int, above: frozenset[str]
    ) -> _Below:
        made: list[Field] = []
        for name, schema in properties.items():
            if self.left <= 0:
                return _Below(tuple(made), True)
            self.left -= 1
            made.append(self.grow(name, schema, name in required, depth, above))
        return _Below(tuple(made))


def _component_of(inner: Layers) -> str | None:
    return None if inner[0].get("properties") else component_of(inner[0])


def _value_of_map(schemas: Schema, schema: Schema) -> Schema:
    """The schema of a map's values; empty if there is none."""
    values = objects([layer.get("additionalProperties") for layer in layers_of(schemas, schema)])
    return values[0] if values else {}


def as_json(
    document: Document, kind: GroupVersionKind, names: tuple[str, ...], field: Field
) -> dict[str, Any]:
    """The field at the end of ``names``; a kind has the media types of its operations. ``truncated`` is
    present, and true, if fields were cut off."""
    made: dict[str, Any] = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    made["path"] = format_path(names)
    made.update(_field(field))
    if not field.is_whole:
        made["truncated"] = True
    if not names and (media_types := media_types_json(document, kind)):
        made["mediaTypes"] = media_types
    return made


def _field(field: Field) -> dict[str, Any]:
    made: dict[str, Any] = {"name": field.name} if field.name else {}
    made["type"] = field.type
    if field.is_required:
        made["required"] = True
    if field.description:
        made["description"] = field.description
    made.update(details_json(field.details))
    if field.fields:
        made["fields"] = [_field(each) for each in field.fields]
    if field.has_more:
        made["hasMore"] = True
    return made


def details_json(details: Details) -> dict[str, Any]:
    """Members are named as in OpenAPI and Kubernetes, without the prefix ``x-kubernetes-``."""
    made: dict[str, Any] = {}
    if details.default:
        made["default"] = orjson.loads(details.default)
    if details.enum:
        made["enum"] = list(details.enum)
    if details.limits:
        made["limits"] = dict(details.limits)
    if details.format:
        made["format"] = details.format
    if details.list_type:
        made["list"] = details.list_type
    if details.unions:
        made["unions"] = list(map(_union, details.unions))
    if details.rules:
        made["rules"] = [{"rule": each.rule, "message": each.message} for each in details.rules]
    if details.is_nullable:
        made["nullable"] = True
    if details.preserves_unknown:
        made["preservesUnknownFields"] = True
    if details.deprecated:
        made["deprecated"] = details.deprecated
    return made


def _union(union: Union) -> dict[str, Any]:
    made: dict[str, Any] = {"declaredBy": union.form.value}
    if union.discriminator is None:
        members = [{"field": each.field} for each in union.members]
        return {**made, "required": not union.takes_none, "members": members}
    selected: list[dict[str, Any]] = [
        {"field": each.field, "value": each.value, **({"optional": True} if each.is_optional else {})}
        for each in union.members
    ]
    return {**made, "discriminator": union.discriminator, "members": selected}
