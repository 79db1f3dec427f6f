"""Compares two schemas recursively, each place once per path that leads to it.

Components that both documents share, with everything they refer to, are skipped. The result of a pair of
components is cached, unless a recursion was cut short in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import orjson

from specmux_converters.json_values import text
from specmux_converters.references import name_in
from specmux_tools.differences.findings import (
    ITEMS,
    NOTHING,
    VALUES,
    ComparisonBudget,
    Finding,
    Findings,
    Result,
    step,
)
from specmux_tools.differences.rules import RULES, Impact, Impacts
from specmux_tools.differences.schema.compositions import DOCUMENTATION
from specmux_tools.differences.schema.constraints import has_default, required_names
from specmux_tools.differences.schema.keywords import (
    DROPPED_NULL,
    EMBEDDED,
    PRESERVES,
    Pair,
    is_documented_differently,
    keyword_changes,
    properties,
)
from specmux_tools.differences.schema.value_types import type_changes, value_type
from specmux_tools.differences.schema.views import ComponentSchemas, View

_REFERENCE: Final = re.compile(rb'"\$ref":"(#/components/schemas/[^"\\]*)"')
_OF_OBJECTS: Final = frozenset({"apiVersion", "kind", "metadata"})
_UNTYPED: Final[Mapping[str, Any]] = {}

_ASKS_NOTHING: Final = DOCUMENTATION | {PRESERVES, "nullable", "default"}

_Key = tuple[str, str]


class SchemaComparison:
    """Compares schemas of one document with schemas of another; reusable for any number of pairs."""

    def __init__(
        self, old: ComponentSchemas, new: ComponentSchemas, *, is_enforced: bool, budget: ComparisonBudget
    ) -> None:
        self._old = old
        self._new = new
        self._is_enforced = is_enforced
        self._budget = budget
        self._unchanged = _list_unchanged(old.components, new.components)
        self._known: dict[_Key, tuple[Result, frozenset[_Key]]] = {}
        """Results by pair, with the pairs that were entered on the way: the result differs if one of those is
        already open."""
        self._entered: dict[_Key, int] = {}
        self._below_pair: set[_Key] = set()
        """Pairs entered below the innermost open pair."""
        self._cut = _NEVER
        """Depth at which the outermost truncated recursion began."""

    def compare(self, old: Any, new: Any) -> Result:
        """Raises LimitExceeded."""
        if self._is_same(old, new):
            return NOTHING
        self._budget.count_schema()
        before, after = self._old.view(old), self._new.view(new)
        sides = (self._old, before.keywords), (self._new, after.keywords)
        both = Pair(*sides, (value_type(*sides[0]), value_type(*sides[1])))
        changed = tuple(type_changes(*both.types, is_enforced=self._is_enforced))
        if changed and changed[0].id == "type-changed":
            found = Result(changed)
        else:
            here = (*changed, *keyword_changes(both, is_enforced=self._is_enforced, budget=self._budget))
            documented = is_documented_differently(before.keywords, after.keywords)
            found = Result(here, int(documented)) + self._children(before, after, both)
        self._budget.count_places(len(found.findings))
        if after.source and _without_documentation(before.beside) == _without_documentation(after.beside):
            return found.of_component(before.source or after.source)
        return found

    def _is_same(self, old: Any, new: Any) -> bool:
        """True only if the schemas cannot differ. Another order of equal members still counts as a
        difference."""
        if not isinstance(old, dict) or not isinstance(new, dict):
            return not isinstance(old, dict) and not isinstance(new, dict)
        if old.keys() == new.keys() == {"$ref"}:
            reference = old["$ref"]
            return reference == new["$ref"] and _component(reference) in self._unchanged
        written = orjson.dumps(old)
        if written != orjson.dumps(new):
            return False
        return all(_component(name.decode()) in self._unchanged for name in _REFERENCE.findall(written))

    def _children(self, before: View, after: View, both: Pair) -> Result:
        """Compares the children; cached if both sides' children are those of components."""
        if before.source is None or after.source is None:
            return self._below(before.keywords, after.keywords, both)
        key = (before.source, after.source)
        if key in self._entered:
            self._cut = min(self._cut, self._entered[key])
            return NOTHING
        known, pairs = self._known.get(key, _NOT_KNOWN)
        if known is not None and pairs.isdisjoint(self._entered):
            self._below_pair |= pairs
            return known
        return self._enter(key, before, after, both)

    def _enter(self, key: _Key, before: View, after: View, both: Pair) -> Result:
        depth = self._entered[key] = len(self._entered)
        outer, self._cut = self._cut, _NEVER
        beside, self._below_pair = self._below_pair, set()
        found = self._below(before.keywords, after.keywords, both).of_component(key[0])
        del self._entered[key]
        self._below_pair.add(key)
        if self._cut >= depth:
            self._known[key] = found, frozenset(self._below_pair)
            self._cut = outer
        else:
            self._cut = min(outer, self._cut)
        self._below_pair |= beside
        return found

    def _below(self, old: Mapping[str, Any], new: Mapping[str, Any], both: Pair) -> Result:
        found = NOTHING
        if both.both_may_be("object"):
            found += self._object(old, new)
        if both.both_may_be("array") and ("items" in old or "items" in new):
            items = self.compare(old.get("items", _UNTYPED), new.get("items", _UNTYPED))
            found += items.below(ITEMS)
        return found

    def _object(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> Result:
        before, after = _values(old), _values(new)
        if before is not None and after is None and self._is_closed(new):
            return Result((Finding("map-closed", ""),))
        if before is None and after is not None and properties(old) and not properties(new):
            return Result((Finding("map-opened", ""),)) + self._compare_opened_map(old, new, after)
        found = self._properties(old, new)
        if before is not None or after is not None:
            found += self._map_values(before, after, old)
        if _preserves(old) != _preserves(new) and before is None and after is None:
            change = "unknown-fields-pruned" if _preserves(old) else "unknown-fields-preserved"
            found = Result((Finding(change, ""),)) + found
        return found

    def _is_closed(self, schema: Mapping[str, Any]) -> bool:
        """An enforced schema drops unlisted fields; a descriptive schema without fields accepts any."""
        return not _preserves(schema) and (self._is_enforced or bool(properties(schema)))

    def _compare_opened_map(self, old: Mapping[str, Any], new: Mapping[str, Any], values: Any) -> Result:
        """Breaks writers of fields that existed: the map's value schema has other constraints."""
        found = [
            Finding("field-became-required", step(name))
            for name in sorted(required_names(new) - required_names(old))
        ]
        for name, schema in sorted(properties(old).items()):
            found += self.compare(schema, values).below(step(name)).findings
        return Result(tuple(each for each in found if RULES[each.id].impacts.write is Impact.BREAKING))

    def _map_values(self, before: Any, after: Any, old: Mapping[str, Any]) -> Result:
        if before is not None and after is not None:
            found = self.compare(before, after)
            return (found.map(_drop_null) if self._is_enforced else found).below(VALUES)
        if before is not None:
            return Result((Finding("field-untyped", VALUES),) if self._is_typed(self._old, before) else ())
        if self._is_closed(old):
            return Result((Finding("field-added", VALUES),))
        return Result((Finding("field-typed", VALUES),) if self._is_typed(self._new, after) else ())

    def _properties(self, old: Mapping[str, Any], new: Mapping[str, Any]) -> Result:
        before, after = properties(old), properties(new)
        needed = required_names(old), required_names(new)
        implied = _OF_OBJECTS if (old.get(EMBEDDED) is True) != (new.get(EMBEDDED) is True) else frozenset()
        found, documentation = list[Finding](), 0
        for name in sorted(before.keys() | after.keys() | (needed[0] ^ needed[1])):
            if name in implied:
                continue
            if name in after and name not in before:
                found.append(self._added_field(old, after[name], name, is_required=name in needed[1]))
                found += self._key_of_map(_values(old), after[name], name)
            elif name in before and name not in after:
                change = "field-untyped" if _preserves(new) else "field-removed"
                found.append(Finding(change, step(name), old=self._type(self._old, before[name])))
            else:
                found.extend(self._requirement(after.get(name), name, needed))
                if name in before:
                    result = self.compare(before[name], after[name])
                    if name in needed[1] and self._is_enforced:
                        result = result.map(_lose_default)
                    result = result.below(step(name))
                    found.extend(result.findings)
                    documentation += result.documentation
        return Result(tuple(found), documentation)

    def _added_field(self, old: Mapping[str, Any], schema: Any, name: str, *, is_required: bool) -> Finding:
        change = "field-added"
        if is_required and not self._has_default(schema):
            change = "field-added-required"
        elif _preserves(old) and self._asks(schema):
            change = "field-typed"
        return Finding(change, step(name), new=self._type(self._new, schema))

    def _requirement(
        self, schema: Any, name: str, needed: tuple[frozenset[str], frozenset[str]]
    ) -> Iterator[Finding]:
        if (name in needed[0]) == (name in needed[1]):
            return
        if name in needed[0]:
            yield Finding("field-became-optional", step(name))
        elif not (self._is_enforced and self._has_default(schema)):
            yield Finding("field-became-required", step(name))

    def _has_default(self, schema: Any) -> bool:
        return has_default(self._new.view(schema).keywords, is_enforced=self._is_enforced)

    def _is_typed(self, schemas: ComponentSchemas, schema: Any) -> bool:
        return value_type(schemas, schemas.view(schema).keywords).types is not None

    def _key_of_map(self, values: Any, schema: Any, name: str) -> Findings:
        """Breaks writers of a key that was free and now has its own schema."""
        if values is None:
            return ()
        found = self.compare(values, {"allOf": [values, schema]}).below(step(name)).findings
        return tuple(each for each in found if RULES[each.id].impacts.write is Impact.BREAKING)

    def _asks(self, schema: Any) -> bool:
        """Whether the new schema rejects any value."""
        keywords = self._new.view(schema).keywords.keys()
        return self._is_typed(self._new, schema) or not keywords <= _ASKS_NOTHING

    def _type(self, schemas: ComponentSchemas, schema: Any) -> str | None:
        return text(schemas.view(schema).keywords.get("type")) or None


_NEVER: Final = 1 << 30
_LOST: Final = Impacts(Impact.BREAKING, Impact.WARNING, Impact.BREAKING)
_NULLABLE_REMOVED: Final = Finding("nullable-removed", "")
_NOT_KNOWN: Final[tuple[None, frozenset[_Key]]] = (None, frozenset())


def _drop_null(finding: Finding) -> Finding:
    """For a map's values: an apiserver drops nulls that are not allowed."""
    return replace(finding, impacts=DROPPED_NULL) if finding == _NULLABLE_REMOVED else finding


def _lose_default(finding: Finding) -> Finding:
    """For a required field: a stored object without it is now invalid."""
    is_lost = finding.id == "default-removed" and not finding.steps
    return replace(finding, impacts=_LOST) if is_lost else finding


def _values(schema: Mapping[str, Any]) -> Any:
    """The schema of a map's values; None if keys are not free."""
    found = schema.get("additionalProperties")
    if found is True:
        return _UNTYPED
    return found if isinstance(found, dict) else None


def _preserves(schema: Mapping[str, Any]) -> bool:
    return schema.get(PRESERVES) is True


def _without_documentation(beside: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in beside.items() if key != "description"}


def _component(reference: Any) -> str | None:
    return name_in(reference, "schemas") if isinstance(reference, str) else None


def _list_unchanged(old: Mapping[str, Any], new: Mapping[str, Any]) -> frozenset[str]:
    """Names of components that are identical in both documents, including everything they refer to."""
    written: dict[str, bytes] = {}
    for name in old.keys() & new.keys():
        text = orjson.dumps(old[name])
        if text == orjson.dumps(new[name]):
            written[name] = text
    users: dict[str | None, list[str]] = {}
    waiting: list[str] = []
    for name, text in written.items():
        targets = {_component(reference.decode()) for reference in set(_REFERENCE.findall(text))}
        for target in targets:
            users.setdefault(target, []).append(name)
        if b'"$ref"' in text and text.count(b'"$ref":"') > len(_REFERENCE.findall(text)):
            waiting.append(name)
    waiting += [user for target, names in users.items() if target not in written for user in names]
    changed: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in changed:
            changed.add(name)
            waiting.extend(users.get(name, ()))
    return frozenset(written.keys() - changed)
