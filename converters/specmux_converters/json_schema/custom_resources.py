"""Schemas of custom resources: what an apiserver's pruning, defaulting and validation accept.

Null counts as absent if the field is neither nullable nor required, an absent field has its default, and
unknown fields are dropped, which strict clients report. Source: apiextensions-apiserver, pkg/apiserver/schema
(pruning, defaulting) and pkg/apiserver/validation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from specmux_converters.crd.keywords import DEFINED_FIELDS
from specmux_converters.json_schema.combinators import branches, required_beside
from specmux_converters.json_schema.components import Components
from specmux_converters.json_schema.forms import Mode, Schema
from specmux_converters.json_schema.keywords import COMBINATORS, NULL, plain_keywords, with_null
from specmux_converters.json_schema.scalars import STRFMT_BASE64, format_of
from specmux_converters.json_schema.typed import TypedConverter
from specmux_converters.json_schema.unions import with_unions
from specmux_converters.json_values import mapping
from specmux_converters.references import component_of

_PRESERVES: Final = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING: Final[Schema] = {"anyOf": [{"type": "integer"}, {"type": "string"}]}


class CustomResources:
    """Converts the components of custom resources; ``typed`` converts what they refer to."""

    def __init__(self, components: Components, typed: TypedConverter) -> None:
        self._components = components
        self._typed = typed

    def convert(
        self, schema: Any, mode: Mode, *, takes_null: bool = False, is_needed: bool = False
    ) -> Schema:
        """``is_needed``: null is refused even without a type."""
        if not isinstance(schema, dict):
            return {}
        name = component_of(schema)
        if name is not None:
            return self._typed.reference(name, schema, mode, takes_null=takes_null)
        written = self.body(schema, mode)
        if takes_null:
            return with_null(written)
        if is_needed and "type" not in written and "not" not in written:
            return written | {"not": NULL}
        return written

    def body(self, schema: Mapping[str, Any], mode: Mode, *, relaxed: str | None = None) -> Schema:
        """``relaxed``: the property in which nothing is required."""
        written = plain_keywords(schema)
        written |= {key: value for key, value in schema.items() if key.startswith("x-kubernetes-")}
        if schema.get("default") is not None:
            written["default"] = schema["default"]
        if isinstance(schema.get("type"), str):
            written["type"] = schema["type"]
        written |= format_of(schema, base64=STRFMT_BASE64)
        if isinstance(schema.get("enum"), list):
            written["enum"] = schema["enum"]
        if schema.get("x-kubernetes-list-type") == "set":
            written["uniqueItems"] = True
        if "items" in schema:
            written["items"] = self._item(schema["items"], mode)
        written |= branches(schema, mode)
        if schema.get("x-kubernetes-int-or-string") is True and not any(
            key in written for key in COMBINATORS
        ):
            written |= _INT_OR_STRING
        return with_unions(written | self._fields(schema, mode, relaxed), schema, "", mode)

    def _item(self, schema: Any, mode: Mode) -> Schema:
        return self.convert(schema, mode, takes_null=_is_nullable(schema) or _has_default(schema))

    def _fields(self, schema: Mapping[str, Any], mode: Mode, relaxed: str | None) -> Schema:
        written: Schema = {}
        needed = required_beside(schema, schema) if mode.requires else []
        needed = [name for name in needed if name != relaxed]
        properties, defined = schema.get("properties"), mapping(schema.get(DEFINED_FIELDS))
        if isinstance(properties, dict) and properties:
            written["properties"] = {
                name: self._field(
                    value,
                    mode,
                    is_needed=name in needed,
                    is_relaxed=name == relaxed,
                    defined=mapping(defined.get(name)),
                )
                for name, value in properties.items()
            }
        if needed:
            written["required"] = needed
        others = schema.get("additionalProperties")
        if isinstance(others, dict):
            written["additionalProperties"] = self.convert(others, mode, takes_null=True)
        elif mode.is_strict and schema.get(_PRESERVES) is not True and _is_object(schema):
            written["additionalProperties"] = self._unknown(others)
        return written

    def _field(
        self,
        schema: Any,
        mode: Mode,
        *,
        is_needed: bool,
        is_relaxed: bool,
        defined: Mapping[str, Any],
    ) -> Schema:
        """``defined``: the definition's own schema, where ``schema`` is what an apiserver publishes."""
        below = Mode(mode.is_strict, requires=False) if is_relaxed else mode
        takes_null = not is_needed or _is_nullable(schema)
        written = self.convert(schema, below, takes_null=takes_null, is_needed=is_needed)
        if not defined.keys() - {"type"}:
            return written
        own = self.convert(defined, Mode(is_strict=False, requires=below.requires), takes_null=takes_null)
        if "$ref" in written:
            return {"allOf": [written, own]}
        return {**written, "allOf": [*written.get("allOf", ()), own]}

    def _unknown(self, others: Any) -> Schema | bool:
        """Fields without a schema are dropped; with ``additionalProperties: true`` only their unknown content
        is."""
        return self._components.pruned() if isinstance(others, bool) else False


def _is_object(schema: Mapping[str, Any]) -> bool:
    return schema.get("type") == "object" or bool(schema.get("properties"))


def _is_nullable(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("nullable") is True


def _has_default(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("default") is not None
