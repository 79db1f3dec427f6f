"""The rules by which a strategic merge patch merges a field: ``x-kubernetes-patch-strategy`` and
``-patch-merge-key``.

An apiserver reads the tags of its Go structs, from which documents are generated (apimachinery,
pkg/util/strategicpatch/meta.go); the schema shows which components are structs, maps and lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from specmux_converters.crd.keywords import PRESERVE_UNKNOWN_FIELDS
from specmux_converters.go.text import quote_text
from specmux_converters.json_values import mapping
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.references import component_of, resolve_schema
from specmux_tools.validation.decoding.typed_nodes import short_name
from specmux_tools.validation.errors import PatchError

_RETAIN_KEYS: Final = "retainKeys"
_SCALARS: Final = {"string": "string", "boolean": "bool", "integer": "int64", "number": "float64"}
_OWN_STRUCTS: Final = frozenset(
    ("Quantity", "Time", "MicroTime", "IntOrString", "RawExtension", "FieldsV1", "JSON", "Duration")
)
"""Go structs whose schema is a scalar or unconstrained."""


@dataclass(frozen=True, slots=True)
class PatchField:
    """``type`` is the type of the field; of a list, that of its elements."""

    type: PatchSchema
    strategy: str = ""
    merge_key: str = ""


class PatchSchema:
    """A schema, with the components that it refers to."""

    __slots__ = ("_name", "_schema", "_schemas")

    def __init__(self, schemas: Mapping[str, Any], schema: Any, name: str = "") -> None:
        self._schemas = schemas
        component = component_of(schema) if isinstance(schema, dict) else None
        self._name = short_name(component) if component else name
        self._schema = resolve_schema(schemas, schema) if isinstance(schema, dict) else {}

    @property
    def kind(self) -> str:
        """reflect.Kind."""
        schema = self._schema
        if self._name in _OWN_STRUCTS or isinstance(schema.get("properties"), dict):
            return "struct"
        if schema.get("additionalProperties") is not None:
            return "map"
        match schema.get("type"):
            case "array":
                return "slice"
            case "integer":
                return str(schema.get("format", "int64"))
            case str(name) if name in _SCALARS:
                return _SCALARS[name]
        return "struct"

    @property
    def _is_open(self) -> bool:
        """Whether its fields are not known: structs are merged, and lists replaced."""
        return self._schema.get(PRESERVE_UNKNOWN_FIELDS) is True

    def of_field(self, key: str) -> PatchField:
        """Raises PatchError for an unknown field."""
        return PatchField(self) if self._is_open else self._field(key, self._property(key))

    def of_list(self, key: str) -> PatchField:
        """The field's elements. Raises PatchError."""
        if self._is_open:
            return PatchField(self)
        schema = self._property(key)
        held = PatchSchema(self._schemas, schema)
        if held.kind != "slice":
            raise PatchError(f"expected slice or array type, but got: {self.kind}")
        items = held._schema.get("items")
        if PatchSchema(self._schemas, items).kind == "slice":
            raise PatchError("unexpected slice of slice")
        return self._field(key, schema, items)

    def _property(self, key: str) -> Mapping[str, Any]:
        if self.kind != "struct":
            raise PatchError(
                f"merging an object in json but data type is not struct, instead is: {self.kind}"
            )
        schema = mapping(self._schema.get("properties")).get(key)
        if not isinstance(schema, dict):
            raise PatchError(
                f"unable to find api field in struct {self._name} for the json field {quote_text(key)}"
            )
        return schema

    def _field(self, key: str, schema: Mapping[str, Any], held: Any = None) -> PatchField:
        strategies = str(schema.get("x-kubernetes-patch-strategy", "")).split(",")
        others = [each for each in strategies if each != _RETAIN_KEYS]
        if len(strategies) > 2 or len(others) > 1:
            raise PatchError(f"unexpected patch strategy: [{' '.join(strategies)}]")
        merge_key = str(schema.get("x-kubernetes-patch-merge-key", ""))
        of = PatchSchema(self._schemas, schema if held is None else held, key)
        return PatchField(of, others[0] if others else "", merge_key)
