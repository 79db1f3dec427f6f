"""Compares two schemas of one place, without their children."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from specmux_converters.json_values import mapping
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.differences.findings import ComparisonBudget, Finding
from specmux_tools.differences.impacts import Impact, Impacts
from specmux_tools.differences.schema.cel_rules import documented_differently, rule_changes
from specmux_tools.differences.schema.compositions import DOCUMENTATION, Side, composition_changes
from specmux_tools.differences.schema.constraints import constraint_changes
from specmux_tools.differences.schema.deprecations import deprecation_changes
from specmux_tools.differences.schema.merging import list_changes, map_changes
from specmux_tools.differences.schema.unions import union_changes
from specmux_tools.differences.schema.value_types import ValueType, type_changes, value_type
from specmux_tools.differences.schema.values import default_changes, enum_changes, has_default

PRESERVES: Final = "x-kubernetes-preserve-unknown-fields"
EMBEDDED: Final = "x-kubernetes-embedded-resource"
DROPPED_NULL: Final = Impacts(Impact.WARNING, Impact.NONE, Impact.WARNING)
"""Impacts of a null that an apiserver drops or defaults before it accepts the object."""
_SELECTABLE: Final = "x-kubernetes-selectable-fields"


@dataclass(frozen=True, slots=True)
class Pair:
    """The schemas of one place, old and new."""

    old: Side
    new: Side
    types: tuple[ValueType, ValueType]

    def both_may_be(self, name: str) -> bool:
        return all(side.may_be(name) for side in self.types)


def pair(old: Side, new: Side) -> Pair:
    return Pair(old, new, (value_type(*old), value_type(*new)))


def keyword_changes(both: Pair, *, is_enforced: bool, budget: ComparisonBudget) -> Iterator[Finding]:
    """Yields all findings but a changed type, which ends the comparison (``type_findings``)."""
    old, new = both.old[1], both.new[1]
    yield from deprecation_changes(old, new)
    yield from _nullable_changes(both, is_enforced=is_enforced)
    yield from enum_changes(old, new)
    yield from default_changes(old, new, is_enforced=is_enforced)
    yield from constraint_changes(old, new)
    types_of = (both.types[0].branches_of, both.types[1].branches_of)
    yield from composition_changes(both.old, both.new, types_of=types_of, budget=budget)
    yield from union_changes(old, new)
    yield from _rules(old, new)
    yield from _selectable(old, new)
    if both.both_may_be("array") and _is_said(both, "array"):
        yield from list_changes(old, new)
    elif both.both_may_be("object") and _is_said(both, "object"):
        yield from map_changes(old, new)
    yield from _flag(old.get(EMBEDDED) is True, new.get(EMBEDDED) is True, _EMBEDDED_RESOURCE)


def type_findings(both: Pair, *, is_enforced: bool) -> tuple[Finding, ...]:
    return tuple(type_changes(*both.types, is_enforced=is_enforced))


def is_documented_differently(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    return any(old.get(key) != new.get(key) for key in DOCUMENTATION) or documented_differently(old, new)


_NULLABLE: Final = ("nullable-removed", "nullable-added")
_EMBEDDED_RESOURCE: Final = ("embedded-resource-removed", "embedded-resource-added")


def _flag(before: bool, after: bool, changes: tuple[str, str]) -> Iterator[Finding]:
    if before != after:
        yield Finding(changes[after], "")


def _nullable_changes(both: Pair, *, is_enforced: bool) -> Iterator[Finding]:
    """A null that is not allowed is harmless if an apiserver fills in a default."""
    old, new = both.old[1], both.new[1]
    for found in _flag(_is_nullable(old, both.types[0]), _is_nullable(new, both.types[1]), _NULLABLE):
        is_filled = is_enforced and found.id == "nullable-removed" and has_default(new, is_enforced=True)
        yield replace(found, impacts=DROPPED_NULL) if is_filled else found


def _is_nullable(schema: Mapping[str, Any], types: ValueType) -> bool:
    return schema.get("nullable") is True or types.takes_null


def _is_said(both: Pair, name: str) -> bool:
    return any(side.types is not None and name in side.types for side in both.types)


def _rules(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Finding]:
    if "x-kubernetes-validations" in old or "x-kubernetes-validations" in new:
        yield from rule_changes(old, new, frozenset(properties(new).keys() - properties(old).keys()))


def properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(schema.get("properties"))


def _selectable(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Finding]:
    before, after = _selectable_fields(old), _selectable_fields(new)
    for field in sorted(before - after):
        yield Finding("selectable-field-removed", "", what=field)
    for field in sorted(after - before):
        yield Finding("selectable-field-added", "", what=field)


def _selectable_fields(schema: Mapping[str, Any]) -> frozenset[str]:
    listed = schema.get(_SELECTABLE)
    fields = (
        [item.get("fieldPath") for item in listed if isinstance(item, dict)]
        if isinstance(listed, list)
        else []
    )
    return frozenset(field.removeprefix(".") for field in fields if isinstance(field, str))
