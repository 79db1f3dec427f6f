"""Schemas of Go types: what an apiserver's strict decoding accepts.

Go reads null as absent wherever a value may be absent. It does not check enums, which are kept for editors,
and treats "" as an absent value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from specmux_converters.json_schema.components import Components
from specmux_converters.json_schema.forms import Mode, Schema
from specmux_converters.json_schema.keywords import (
    BY_COMPONENT,
    COMBINATORS,
    GO_BASE64,
    INT_OR_STRING,
    NULL,
    combinators_of,
    deprecation,
    format_of,
    plain_keywords,
    with_null,
    with_unions,
)
from specmux_converters.json_values import array, mapping
from specmux_converters.references import component_of

NEVER_NULL: Final = ("apiVersion", "kind")
STATUS: Final = "status"

_PROPS: Final = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchemaProps"
_PROPS_OR: Final = {f"{_PROPS}Or{what}": what for what in ("Array", "Bool", "StringArray")}
"""Components without a schema, decoded by Go code (apiextensions/v1/marshal.go)."""

_SCALARS: Final = ["string", "number", "boolean", "null"]


class TypedConverter:
    """Converts components of Go types. ``with_status``: those whose status only controllers write."""

    def __init__(self, components: Components, with_status: frozenset[str] = frozenset()) -> None:
        self._components = components
        self._with_status = with_status

    def component(self, name: str, mode: Mode) -> Schema:
        schema = self._components.schemas[name]
        titled: Schema = {"title": name.rpartition(".")[2]}
        if "description" in schema:
            titled |= {"description": schema["description"]} | deprecation(schema["description"])
        if name in BY_COMPONENT:
            return titled | BY_COMPONENT[name]
        if name in _PROPS_OR:
            return titled | self._schema_or(_PROPS_OR[name], mode)
        body = self.body(schema, mode, relaxed=STATUS if name in self._with_status else None)
        return titled | with_unions(body, schema, name, mode)

    def reference(self, name: str, schema: Mapping[str, Any], mode: Mode, *, takes_null: bool) -> Schema:
        """The target of ``schema``'s reference, with the schema's own keywords."""
        target = self._components.reference(name, mode)
        own: Schema = {}
        if "description" in schema:
            own = {"description": schema["description"]} | deprecation(schema["description"])
        own |= _default(schema)
        if "$ref" not in target:
            merged = {**target, **own}
            return with_null(merged) if takes_null else merged
        if takes_null:
            return {**own, "anyOf": [target, NULL]}
        return {**own, "allOf": [target]} if own else target

    def convert(self, schema: Any, mode: Mode, *, takes_null: bool = False) -> Schema:
        if not isinstance(schema, dict):
            return {}
        name = component_of(schema)
        if name is not None:
            return self.reference(name, schema, mode, takes_null=takes_null)
        written = self.body(schema, mode)
        values = schema.get("enum")
        if takes_null and isinstance(values, list) and schema.get("type") == "string":
            del written["enum"]
            return with_null(written) | {"anyOf": [{"enum": values}, {"maxLength": 0}]}
        return with_null(written) if takes_null else written

    def body(self, schema: Mapping[str, Any], mode: Mode, *, relaxed: str | None = None) -> Schema:
        """``relaxed``: the property in which nothing is required."""
        written = plain_keywords(schema)
        written |= _default(schema)
        if schema.get("format") == "int-or-string" or schema.get("x-kubernetes-int-or-string") is True:
            return written | INT_OR_STRING
        if isinstance(schema.get("type"), str):
            written["type"] = schema["type"]
        written |= format_of(schema, base64=GO_BASE64)
        if isinstance(schema.get("enum"), list):
            written["enum"] = schema["enum"]
        if "items" in schema:
            written["items"] = self.convert(schema["items"], mode, takes_null=True)
        written |= self._combine_members(schema, mode)
        return written | self._fields(schema, mode, relaxed)

    def _fields(self, schema: Mapping[str, Any], mode: Mode, relaxed: str | None) -> Schema:
        written: Schema = {}
        properties = mapping(schema.get("properties"))
        required = array(schema.get("required")) if mode.requires else ()
        needed = [name for name in required if name != relaxed]
        if properties:
            optional = Mode(mode.is_strict, requires=False)
            written["properties"] = {
                name: self.convert(
                    value,
                    optional if name == relaxed else mode,
                    takes_null=name not in needed and name not in NEVER_NULL,
                )
                for name, value in properties.items()
            }
        if needed:
            written["required"] = needed
        others = schema.get("additionalProperties")
        if isinstance(others, dict):
            written["additionalProperties"] = self.convert(others, mode, takes_null=True)
        elif isinstance(others, bool):
            written["additionalProperties"] = others
        elif mode.is_strict and "properties" in written and not _adds_fields(schema):
            written["additionalProperties"] = False
        return written

    def _combine_members(self, schema: Mapping[str, Any], mode: Mode) -> Schema:
        """Their members do not restrict fields that they do not name."""
        open_mode = Mode(is_strict=False, requires=mode.requires)
        written: Schema = {}
        for key in combinators_of(mode):
            value = schema.get(key)
            if isinstance(value, list) and value:
                written[key] = [self.convert(each, open_mode) for each in value]
            elif key == "not" and isinstance(value, dict):
                written[key] = self.convert(value, open_mode)
        return written

    def _schema_or(self, what: str, mode: Mode) -> Schema:
        """Go decodes these leniently, and ignores unknown forms."""
        schema = self._components.reference(_PROPS, Mode(is_strict=False, requires=False))
        if what == "Bool":
            return {"anyOf": [schema, {"type": ["boolean", "null"]}]}
        items = schema if what == "Array" else {"type": ["string", "null"]}
        return {"anyOf": [schema, {"type": "array", "items": items}, {"type": _SCALARS}]}


def _adds_fields(schema: Mapping[str, Any]) -> bool:
    """Whether a combinator may have fields that ``properties`` lacks."""
    return any(
        isinstance(each, dict) and ("properties" in each or "$ref" in each or "additionalProperties" in each)
        for key in COMBINATORS
        for each in array(schema.get(key)) or [schema.get(key)]
    )


def _default(schema: Mapping[str, Any]) -> Schema:
    """The default, unless it is a zero value, which Kubernetes publishes for nearly every field."""
    return {"default": schema["default"]} if schema.get("default") else {}
