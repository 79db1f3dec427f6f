"""Compares two schemas of one place, without their children."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from specmux_converters.json_values import mapping, objects, text, texts
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.unions import Union, UnionForm, declared_unions
from specmux_tools.differences.findings import ComparisonBudget, Finding, set_changes
from specmux_tools.differences.rules import Impact, Impacts
from specmux_tools.differences.schema.compositions import DOCUMENTATION, Side, composition_changes
from specmux_tools.differences.schema.constraints import (
    constraint_changes,
    default_changes,
    enum_changes,
    has_default,
)
from specmux_tools.differences.schema.value_types import ValueType

_RULES: Final = "x-kubernetes-validations"
_SENTENCE: Final = re.compile(r"(?:\A|[.!?]\s|\n)[\s*_]*deprecated\b", re.IGNORECASE)


def union_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Finding]:
    """A finding's ``what`` names the union by its discriminator or its members, or names the changed
    member."""
    before, after = _declared_unions(old), _declared_unions(new)
    for union in before:
        same = next((other for other in after if _is_same(union, other)), None)
        if same is None:
            yield Finding("union-removed", "", what=_name(union))
            continue
        after.remove(same)
        if union.discriminator != same.discriminator:
            told = union.discriminator, same.discriminator
            yield Finding("union-discriminator-changed", "", _name(union), *told)
        yield from _member_changes(union, same)
    for union in after:
        yield Finding("union-added", "", what=_name(union))


def _declared_unions(schema: Mapping[str, Any]) -> list[Union]:
    return [union for union in declared_unions(schema).unions if union.form is UnionForm.EXTENSION]


def _is_same(union: Union, other: Union) -> bool:
    if union.discriminator is not None and union.discriminator == other.discriminator:
        return True
    return bool(union.fields & other.fields)


def _name(union: Union) -> str:
    return union.discriminator or ", ".join(member.field for member in union.members)


def _member_changes(old: Union, new: Union) -> Iterator[Finding]:
    yield from set_changes(old.fields, new.fields, "union-member-removed", "union-member-added")
    if None in (old.discriminator, new.discriminator):
        return
    for name in sorted(old.fields & new.fields):
        before, after = old.value_of(name), new.value_of(name)
        if before != after:
            yield Finding("union-member-changed", "", name, before, after)


# Absent keywords have the defaults of kube-openapi's ``pkg/schemaconv/smd.go``: a list merges as its patch
# strategy implies, otherwise it is atomic; an object merges by key.


def list_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Finding]:
    """Compares two arrays."""
    (before, keys), (after, new_keys) = _list_type(old), _list_type(new)
    if before != after:
        yield Finding("list-type-changed", "", old=before, new=after)
    elif keys != new_keys:
        yield Finding("list-map-keys-changed", "", old=sorted(keys), new=sorted(new_keys))
    yield from _strategy_changes(old, new)


def map_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Finding]:
    """Compares two objects."""
    before, after = (text(schema.get("x-kubernetes-map-type")) or "granular" for schema in (old, new))
    if before != after:
        yield Finding("map-type-changed", "", old=before, new=after)
    yield from _strategy_changes(old, new)


def _list_type(schema: Mapping[str, Any]) -> tuple[str, frozenset[str]]:
    """The type, and the keys of a list of type map."""
    said = schema.get("x-kubernetes-list-type")
    strategies, merge_key = _strategy(schema)
    if not isinstance(said, str):
        said = "atomic" if "merge" not in strategies else "map" if merge_key else "set"
    if said != "map":
        return said, frozenset()
    keys = schema.get("x-kubernetes-list-map-keys")
    return "map", frozenset(texts(keys) if isinstance(keys, list) else filter(None, [merge_key]))


def _strategy(schema: Mapping[str, Any]) -> tuple[frozenset[str], str]:
    names = map(str.strip, text(schema.get("x-kubernetes-patch-strategy")).split(","))
    return frozenset(filter(None, names)), text(schema.get("x-kubernetes-patch-merge-key"))


def _strategy_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Finding]:
    before, after = _strategy(old), _strategy(new)
    if before != after:
        yield Finding(
            "patch-strategy-changed", "", old=_describe_strategy(before), new=_describe_strategy(after)
        )


def _describe_strategy(strategy: tuple[frozenset[str], str]) -> str | None:
    names, key = ",".join(sorted(strategy[0])), strategy[1]
    return f"{names} by {key}" if key else names or None


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


def keyword_changes(both: Pair, *, is_enforced: bool, budget: ComparisonBudget) -> Iterator[Finding]:
    """Yields all findings but a changed type, which ends the comparison."""
    old, new = both.old[1], both.new[1]
    yield from deprecation_changes(old, new)
    yield from _nullable_changes(both, is_enforced=is_enforced)
    yield from enum_changes(old, new)
    yield from default_changes(old, new, is_enforced=is_enforced)
    yield from constraint_changes(old, new)
    types_of = (both.types[0].branches_of, both.types[1].branches_of)
    yield from composition_changes(both.old, both.new, types_of=types_of, budget=budget)
    yield from union_changes(old, new)
    if old.get(_RULES) != new.get(_RULES):
        from specmux_tools.differences.schema.cel_rules import rule_changes  # which brings CEL's parser

        yield from rule_changes(old, new, frozenset(properties(new).keys() - properties(old).keys()))
    selectable = _selectable_fields(old), _selectable_fields(new)
    yield from set_changes(*selectable, "selectable-field-removed", "selectable-field-added")
    if both.both_may_be("array") and _is_said(both, "array"):
        yield from list_changes(old, new)
    elif both.both_may_be("object") and _is_said(both, "object"):
        yield from map_changes(old, new)
    if (old.get(EMBEDDED) is True) != (new.get(EMBEDDED) is True):
        change = "embedded-resource-added" if new.get(EMBEDDED) is True else "embedded-resource-removed"
        yield Finding(change, "")


def is_documented_differently(old: Mapping[str, Any], new: Mapping[str, Any]) -> bool:
    if any(old.get(key) != new.get(key) for key in DOCUMENTATION):
        return True
    if old.get(_RULES) == new.get(_RULES):
        return False
    from specmux_tools.differences.schema.cel_rules import has_other_messages

    return has_other_messages(old, new)


def _nullable_changes(both: Pair, *, is_enforced: bool) -> Iterator[Finding]:
    """A null that is not allowed is harmless if an apiserver fills in a default."""
    schemas = both.old[1], both.new[1]
    before, after = (
        schema.get("nullable") is True or types.takes_null
        for schema, types in zip(schemas, both.types, strict=True)
    )
    if after and not before:
        yield Finding("nullable-added", "")
    elif before and not after:
        is_filled = is_enforced and has_default(schemas[1], is_enforced=True)
        yield Finding("nullable-removed", "", impacts=DROPPED_NULL if is_filled else None)


def _is_said(both: Pair, name: str) -> bool:
    return any(side.types is not None and name in side.types for side in both.types)


def properties(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping(schema.get("properties"))


def _selectable_fields(schema: Mapping[str, Any]) -> frozenset[str]:
    fields = texts([item.get("fieldPath") for item in objects(schema.get(_SELECTABLE))])
    return frozenset(field.removeprefix(".") for field in fields)


def is_deprecated(holder: Mapping[str, Any]) -> bool:
    """Applies to an operation, a schema or a version of a CustomResourceDefinition."""
    if holder.get("deprecated") is True:
        return True
    description = holder.get("description")
    return isinstance(description, str) and _SENTENCE.search(description) is not None


def deprecation_changes(
    old: Mapping[str, Any], new: Mapping[str, Any], *, what: str | None = None
) -> Iterator[Finding]:
    before, after = is_deprecated(old), is_deprecated(new)
    if before != after:
        yield Finding("deprecated" if after else "undeprecated", "", what=what)
