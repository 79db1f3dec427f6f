"""Built-in kinds and those of extension apiservers: components of a document as Go types.

OpenAPI tells the fields and most of the types. What it does not tell are named strings
(``v1.PullPolicy`` is "string" here) and which objects are raw JSON, which the component's name says.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from specmux_converters.json_values import mapping, texts
from specmux_converters.references import component_of, schemas_of
from specmux_tools.validation.decoding.typed_nodes import (
    ALIASES,
    INT32,
    INT64,
    Anything,
    Boolean,
    Bytes,
    Float,
    IntOrString,
    List,
    Map,
    Node,
    Quantity,
    Struct,
    Text,
    Time,
    go_type,
    short_name,
)
from specmux_tools.validation.schema.scalars import RFC3339, RFC3339_MICRO

_OWNER: Final = "OwnerReference"
_OWN_READERS: Final[Mapping[str, Node]] = {
    "io.k8s.apimachinery.pkg.apis.meta.v1.Time": Time("v1.Time", RFC3339),
    "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime": Time("v1.MicroTime", RFC3339_MICRO),
    "io.k8s.apimachinery.pkg.api.resource.Quantity": Quantity(),
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": IntOrString(),
    "io.k8s.apimachinery.pkg.runtime.RawExtension": Anything("runtime.RawExtension"),
    "io.k8s.apimachinery.pkg.apis.meta.v1.FieldsV1": Anything("v1.FieldsV1"),
}
"""Components whose Go types read JSON themselves."""

_TYPE_META: Final = ("apiVersion", "kind")


class TypedSchemas:
    """The components of one document. Each becomes a type when it is first asked for, once."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._schemas = schemas_of(dict(document))
        self._nodes: dict[str, Node] = dict(_OWN_READERS)

    def node(self, component: str) -> Node:
        """Anything goes where the component is missing."""
        found = self._nodes.get(component)
        if found is None:
            schema = self._schemas.get(component)
            found = self._component(component, schema) if isinstance(schema, dict) else Anything()
            self._nodes[component] = found
        return found

    def _component(self, component: str, schema: Mapping[str, Any]) -> Node:
        if schema.get("type") == "object" and "additionalProperties" not in schema:
            struct = Struct(go_type(component), short_name(component))
            self._nodes[component] = struct
            self._fill(struct, schema)
            return struct
        self._nodes[component] = Anything(go_type(component))  # of a component that refers to itself
        return self._schema(schema, "")

    def _fill(self, struct: Struct, schema: Mapping[str, Any]) -> None:
        # A kind's own apiVersion and kind, which old documents leave out, are always fields.
        if "x-kubernetes-group-version-kind" in schema:
            struct.fields.update(dict.fromkeys(_TYPE_META, Text()))
        for name, inner in mapping(schema.get("properties")).items():
            struct.fields[name] = self._schema(inner, f"{struct.name}.{name}")
        # Owners without a name are told with the rest of the metadata, in its words.
        struct.required = texts(schema.get("required")) if struct.name != _OWNER else ()
        struct.is_open = schema.get("x-kubernetes-preserve-unknown-fields") is True

    def _schema(self, schema: Any, place: str) -> Node:
        """``place`` is the struct's name and the field's, for names that OpenAPI does not tell."""
        if not isinstance(schema, dict):
            return Anything()
        # Most schemas have a type and no reference.
        component = component_of(schema) if "$ref" in schema or "allOf" in schema else None
        if component is not None:
            return self.node(component)
        match schema.get("type"):
            case "object":
                return self._object(schema, place)
            case "array":
                return List(self._schema(schema.get("items"), ""))
            case "string":
                return _text(schema, place)
            case "integer":
                return INT32 if schema.get("format") == "int32" else INT64
            case "number":
                return Float()
            case "boolean":
                return Boolean()
        return Anything()

    def _object(self, schema: Mapping[str, Any], place: str) -> Node:
        values = schema.get("additionalProperties")
        if isinstance(values, dict):
            return Map(self._schema(values, ""))
        if values is True or "properties" not in schema:
            return Map(Anything())
        struct = Struct("struct", place)
        self._fill(struct, schema)
        return struct


def _text(schema: Mapping[str, Any], place: str) -> Node:
    match schema.get("format"):
        case "byte":
            return Bytes()
        case "date-time":
            return Time("v1.Time", RFC3339)
        case "int-or-string":
            return IntOrString()
    choices = frozenset(texts(schema["enum"]) if "enum" in schema else ())
    return Text(ALIASES.get(place, "string"), choices)
