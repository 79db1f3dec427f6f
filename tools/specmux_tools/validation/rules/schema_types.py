"""Types and sizes of values by their schema (apiserver, pkg/cel/common/schemas.go).

Sizes are for the cost of an expression, as an apiserver estimates it before any object is there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final

from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.releases import BOUNDED_INT_OR_STRING, NEWEST, SHORT_NAMES
from specmux_tools.validation.rules.cel.checking.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    STRUCT_KIND,
    TIMESTAMP,
    CelType,
    list_of,
    map_of,
    struct,
)
from specmux_tools.validation.rules.rule_tree import RuleNode, escaped_name

SELF_TYPE: Final = "selfType"
MOST_BYTES: Final = 3 * 1024 * 1024
"""Bytes of a request."""
_DURATION_SIZE: Final = (32, 3)
_DATE_SIZE: Final = (12, 12)
_TIME_SIZE: Final = (32, 21)


@dataclass(slots=True, eq=False)
class Declaration:
    type: CelType
    most: int = 0
    """Characters, items or entries; 0 for all else."""
    least_bytes: int = 1
    """Bytes of its shortest JSON."""
    fields: dict[str, Declaration] = field(default_factory=dict)
    """The fields by their names in CEL."""
    element: Declaration | None = None
    key: Declaration | None = None
    name: str = ""
    """The beginning of names of types in it."""


class Declarations:
    """Types of the values of a schema, each once, with the fields of objects by the name of their type."""

    def __init__(self, minor: int = NEWEST) -> None:
        self._minor = minor
        self.structs: dict[str, Mapping[str, CelType]] = {}
        self._found: dict[RuleNode, Declaration | None] = {}

    def of(self, node: RuleNode, name: str = "") -> Declaration | None:
        """None for what CEL does not know: values without a type, and lists of them."""
        if node not in self._found:
            name = name or f"{SELF_TYPE}_{len(self._found)}_"  # texts have it without the number
            found = self._found[node] = self._declare(node, name)
            if found is not None:
                found.name = found.type.name if found.type.kind == STRUCT_KIND else name
        return self._found[node]

    def _declare(self, node: RuleNode, name: str) -> Declaration | None:
        if node.is_int_or_string:
            most = node.most_length if BOUNDED_INT_OR_STRING.is_in(self._minor) else None
            return Declaration(DYN, MOST_BYTES - 2 if most is None else most * 4)
        match "object" if node.is_resource else node.kind:
            case "array":
                return self._list(node, name)
            case "object":
                return self._object(node, name) if node.additional is None else self._map(node, name)
            case "string":
                return _string(node, self._minor)
            case "boolean":
                return Declaration(BOOL, least_bytes=4)
            case "number":
                return Declaration(DOUBLE)
            case "integer":
                return Declaration(INT)
        return None

    def _list(self, node: RuleNode, name: str) -> Declaration | None:
        element = self.of(node.items, f"{name}.@idx") if node.items is not None else None
        if element is None:
            return None
        most = (MOST_BYTES - 2) // (element.least_bytes + 1) if node.most_items is None else node.most_items
        return Declaration(list_of(element.type), most, 2, element=element)

    def _map(self, node: RuleNode, name: str) -> Declaration | None:
        element = self.of(node.additional, f"{name}.@elem") if node.additional is not None else None
        if element is None:
            return None
        most = (MOST_BYTES - 2) // (element.least_bytes + 6)
        most = most if node.most_properties is None else node.most_properties
        key = Declaration(STRING, least_bytes=2)
        return Declaration(map_of(STRING, element.type), most, 2, element=element, key=key)

    def _object(self, node: RuleNode, name: str) -> Declaration:
        while name in self.structs:
            name += "_"
        self.structs[name] = {}
        found = Declaration(struct(name), least_bytes=2)
        for field_name, inner in node.fields.items():
            escaped = escaped_name(field_name)
            declared = self.of(inner, f"{name}.{escaped or field_name}")
            if declared is None:
                continue
            if escaped is not None:
                found.fields[escaped] = declared
            if field_name in node.required and not inner.has_default:
                found.least_bytes += len(field_name.encode()) + declared.least_bytes + 4
        self.structs[name] = {each: inner.type for each, inner in found.fields.items()}
        return found


def _string(node: RuleNode, minor: int) -> Declaration:
    match node.form:
        case "byte":
            return Declaration(BYTES, MOST_BYTES - 2 if node.most_length is None else node.most_length, 2)
        case "duration":
            return Declaration(DURATION, *_DURATION_SIZE)
        case "date":
            return Declaration(TIMESTAMP, *_DATE_SIZE)
        case "date-time":
            return Declaration(TIMESTAMP, *_TIME_SIZE)
    if node.most_length is not None and (not node.is_name or SHORT_NAMES.is_in(minor)):
        return Declaration(STRING, node.most_length * 4, 2)
    if node.choices:
        texts = (len(each.encode()) for each in node.choices if isinstance(each, str))
        return Declaration(STRING, max(texts, default=0), 2)
    return Declaration(STRING, MOST_BYTES - 2, 2)
