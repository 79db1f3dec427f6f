"""``oneOf``, ``anyOf`` and ``not``: compares branches as sets, since their order has no meaning.

A branch is compared as a whole, with references resolved and documentation removed. Keywords that apply
several times, through ``allOf``, are compared one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from specmux_converters.json_values import array
from specmux_tools.differences.findings import ComparisonBudget, Finding
from specmux_tools.differences.rules import Impact, Impacts
from specmux_tools.differences.schema.constraints import (
    LOWER,
    UPPER,
    compare_limits,
    limits_of,
    required_names,
    takes,
    text,
)
from specmux_tools.differences.schema.value_types import types_alone
from specmux_tools.differences.schema.views import ComponentSchemas, conjuncts

# The answer is "may overlap" wherever the schemas do not say otherwise.

_NUMBERS: Final = frozenset({"integer", "number"})
_BOUNDS: Final = frozenset({*LOWER, *UPPER, "exclusiveMinimum", "exclusiveMaximum"})
_MOST_DEEP_OVERLAPS: Final = 4


def may_overlap(
    one: Mapping[str, Any], other: Mapping[str, Any], holder: Mapping[str, Any], depth: int = 0
) -> bool:
    """``one`` and ``other`` have no references left; ``holder`` is the schema that both are branches of."""
    if depth > _MOST_DEEP_OVERLAPS:
        return True
    types = {one.get("type"), other.get("type")}
    return not (
        (None not in types and len(types) == 2 and types != _NUMBERS)
        or _values_differ(one, other)
        or _ranges_differ(one, other, holder)
        or _is_refused_by(one, other)
        or _is_refused_by(other, one)
        or _is_too_much(one, other, holder)
        or _fields_differ(one, other, holder, depth)
    )


def is_implied(branch: Mapping[str, Any], holder: Mapping[str, Any], depth: int = 0) -> bool:
    """Whether every value that ``holder`` accepts fits the branch, so that the branch constrains nothing."""
    if depth > _MOST_DEEP_OVERLAPS:
        return False
    typed = {**branch, **{key: holder[key] for key in ("type", "format") if key in holder}}
    asked, held = limits_of(typed), limits_of(holder)
    for key, limit in asked.items():
        if held.get(key) != limit and compare_limits(key, held.get(key), limit) == "constraint-tightened":
            return False
    return all(
        key in _BOUNDS or value == holder.get(key) or _is_met(key, value, holder, depth)
        for key, value in branch.items()
    )


def _is_met(key: str, value: Any, holder: Mapping[str, Any], depth: int) -> bool:
    if key == "required":
        return required_names({key: value}) <= required_names(holder)
    if key == "enum":
        return _is_list(holder, key) and {text(each) for each in holder[key]} <= {
            text(each) for each in value
        }
    fields = holder.get("properties")
    return (
        key == "properties"
        and isinstance(fields, dict)
        and all(
            isinstance(fields.get(name), dict) and is_implied(each, fields[name], depth + 1)
            for name, each in value.items()
        )
    )


def _values_differ(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    listed = [{text(value) for value in side["enum"]} for side in (one, other) if _is_list(side, "enum")]
    return len(listed) == 2 and listed[0].isdisjoint(listed[1])


def _ranges_differ(one: Mapping[str, Any], other: Mapping[str, Any], holder: Mapping[str, Any]) -> bool:
    """A bound applies to one type of value. If neither branch says the type, a value of another type fits
    both."""
    is_typed = "type" in {**one, **other, **holder}
    for lower, upper in zip(LOWER, UPPER, strict=True):
        for low, high in ((one, other), (other, one)):
            bounds = limits_of(low).get(lower), limits_of(high).get(upper)
            if bounds[0] is not None and bounds[1] is not None and is_typed:
                if bounds[0][0] > bounds[1][0]:
                    return True
                if bounds[0][0] == bounds[1][0] and (bounds[0][1] or bounds[1][1]):
                    return True
    return False


def _is_refused_by(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether ``other`` rules out, by ``not``, what ``one`` requires."""
    refused = other.get("not")
    if not isinstance(refused, dict):
        return False
    return any(
        _implies(one, each)
        for each in array(refused.get("anyOf") if refused.keys() == {"anyOf"} else [refused])
    )


def _implies(one: Mapping[str, Any], wider: Any) -> bool:
    if not isinstance(wider, dict):
        return False
    if wider.keys() == {"required"}:
        return set(wider["required"]) <= required_names(one)
    return wider.items() <= one.items()


def _is_too_much(one: Mapping[str, Any], other: Mapping[str, Any], holder: Mapping[str, Any]) -> bool:
    most = holder.get("maxProperties")
    needed = required_names(one) | required_names(other) | required_names(holder)
    return isinstance(most, int) and len(needed) > most


def _fields_differ(
    one: Mapping[str, Any], other: Mapping[str, Any], holder: Mapping[str, Any], depth: int
) -> bool:
    """Compares a field that both require and whose values exclude each other: a discriminator."""
    fields = one.get("properties"), other.get("properties")
    if not isinstance(fields[0], dict) or not isinstance(fields[1], dict):
        return False
    always = required_names(holder)
    needed = (required_names(one) | always) & (required_names(other) | always)
    return any(
        isinstance(fields[0][name], dict)
        and isinstance(fields[1][name], dict)
        and not may_overlap(fields[0][name], fields[1][name], {}, depth + 1)
        for name in needed & fields[0].keys() & fields[1].keys()
    )


def _is_list(schema: Mapping[str, Any], keyword: str) -> bool:
    return isinstance(schema.get(keyword), list)


DOCUMENTATION: Final = frozenset(
    {"description", "title", "example", "examples", "externalDocs", "deprecated"}
)
_MOST_DEEP: Final = 12
"""Nesting levels at which branches are still distinguished."""

Side = tuple[ComponentSchemas, Mapping[str, Any]]
Branches = frozenset[bytes]

_ALTERNATIVES: Final = ("oneOf", "anyOf")
_ASKING: Final = frozenset({*_ALTERNATIVES, "not", "allOf"})
_REFUSED: Final = Impacts(Impact.BREAKING, Impact.WARNING, Impact.BREAKING)
"""Impacts where a value may match a second branch."""


def composition_changes(
    old: Side, new: Side, *, types_of: tuple[str | None, str | None], budget: ComparisonBudget
) -> Iterator[Finding]:
    """``types_of``: the keywords whose branches only state types; those are compared as types."""
    if _ASKING.isdisjoint(old[1]) and _ASKING.isdisjoint(new[1]):
        return
    before = {key: _alternatives(*old, key, types_of[0] == key, budget) for key in _ALTERNATIVES}
    after = {key: _alternatives(*new, key, types_of[1] == key, budget) for key in _ALTERNATIVES}
    for branches in before["oneOf"] - after["oneOf"]:
        if any(branches <= others for others in after["anyOf"]):  # "exactly one" became "at least one"
            yield Finding("constraint-relaxed", "", what="oneOf")
            before["oneOf"].remove(branches)
            before["anyOf"].add(branches)
    for key in _ALTERNATIVES:
        asking = {branches for branches in after[key] if not _asks_nothing(branches, key, new[1])}
        change = _compare_conjuncts(before[key], asking | (before[key] & after[key]), key)
        if change is not None:
            is_raised = (
                change == "branch-added" and key == "oneOf" and _overlaps(before[key], after[key], new[1])
            )
            yield Finding(change, "", what=key, impacts=_REFUSED if is_raised else None)
    refused = _list_refused_values(*old, budget), _list_refused_values(*new, budget)
    gone = refused[0] - refused[1]
    added = {each for each in refused[1] - refused[0] if _may_meet(each, new[1])}
    if len(added) > len(gone):
        yield Finding("constraint-tightened", "", what="not")
    elif gone:
        yield Finding("composition-changed" if added else "constraint-relaxed", "", what="not")


def _compare_conjuncts(before: set[Branches], after: set[Branches], keyword: str) -> str | None:
    """Compares all conjuncts of one keyword."""
    gone, added = before - after, after - before
    if keyword == "anyOf":  # a superset of branches that still apply constrains nothing
        added = {branches for branches in added if not any(kept <= branches for kept in before & after)}
        gone = {branches for branches in gone if not any(kept <= branches for kept in before & after)}
    if len(gone) == len(added) == 1:
        (old,), (new,) = gone, added
        return "branch-removed" if old > new else "branch-added" if old < new else "composition-changed"
    if len(added) > len(gone):
        return "constraint-tightened"
    if not gone:
        return None
    return "composition-changed" if added else "constraint-relaxed"


def _asks_nothing(branches: Branches, keyword: str, holder: Mapping[str, Any]) -> bool:
    """Whether every value of the schema fits a branch anyway."""
    listed = array(holder.get("enum"))
    if listed:
        read = [orjson.loads(each) for each in branches]
        return all(_fits(value, read, keyword) for value in listed)
    if keyword == "oneOf" and len(branches) > 1:
        return False
    return any(isinstance(read := orjson.loads(each), dict) and is_implied(read, holder) for each in branches)


def _fits(value: Any, branches: list[Any], keyword: str) -> bool:
    """Whether an enum value certainly fits a branch; for ``oneOf``, exactly one."""
    verdicts = [takes(branch, value) if isinstance(branch, dict) else None for branch in branches]
    if keyword == "anyOf":
        return True in verdicts
    return None not in verdicts and verdicts.count(True) == 1


def _may_meet(refused: bytes, holder: Mapping[str, Any]) -> bool:
    """Whether a value of the schema may be one that ``not`` rejects."""
    read = orjson.loads(refused)
    listed = array(holder.get("enum"))
    if listed and isinstance(read, dict):
        return any(takes(read, value) is not False for value in listed)
    others = {key: value for key, value in holder.items() if key != "not"}
    return not isinstance(read, dict) or may_overlap(read, others, others)


def _overlaps(before: set[Branches], after: set[Branches], holder: Mapping[str, Any]) -> bool:
    """Whether a value that fitted one branch may also fit a new one, and is then rejected."""
    old, new = next(iter(before - after)), next(iter(after - before))
    known = [orjson.loads(branch) for branch in old]
    fresh = [orjson.loads(branch) for branch in new - old]
    return any(
        not isinstance(branch, dict) or not isinstance(other, dict) or may_overlap(branch, other, holder)
        for branch in fresh
        for other in known
    )


def _alternatives(
    schemas: ComponentSchemas,
    keywords: Mapping[str, Any],
    keyword: str,
    says_types: bool,
    budget: ComparisonBudget,
) -> set[Branches]:
    """One set of branches for each occurrence of the keyword."""
    listed = [value for value in conjuncts(keywords, keyword) if isinstance(value, list) and value]
    found = (
        [_text(schemas, branch, budget) for branch in value]
        for value in listed
        if not (says_types and types_alone(schemas, value))
    )
    return {frozenset(_apart(texts) if keyword == "oneOf" else texts) for texts in found}


def _apart(branches: list[bytes]) -> Iterator[bytes]:
    """Marks a branch that ``oneOf`` lists twice: nothing can match it, so its second copy is written as an
    overlapping branch."""
    for number, branch in enumerate(branches):
        yield b'{"allOf":[' + branch + b"]}" if branch in branches[:number] else branch


def _list_refused_values(
    schemas: ComponentSchemas, keywords: Mapping[str, Any], budget: ComparisonBudget
) -> set[bytes]:
    return {_text(schemas, value, budget) for value in conjuncts(keywords, "not") if isinstance(value, dict)}


def _text(schemas: ComponentSchemas, schema: Any, budget: ComparisonBudget) -> bytes:
    return orjson.dumps(_write_out(schemas, schema, _MOST_DEEP, budget), option=orjson.OPT_SORT_KEYS)


def _write_out(schemas: ComponentSchemas, schema: Any, depth: int, budget: ComparisonBudget) -> Any:
    """The schema without references and documentation, cut off below the depth limit."""
    if not isinstance(schema, dict) or depth == 0:
        return schema if isinstance(schema, bool) else None
    budget.count_schema()
    found: dict[str, Any] = {}
    for key, value in schemas.view(schema).keywords.items():
        if key in DOCUMENTATION:
            continue
        if key == "properties" and isinstance(value, dict):
            found[key] = {name: _write_out(schemas, item, depth - 1, budget) for name, item in value.items()}
        elif key in ("items", "additionalProperties", "not"):
            found[key] = _write_out(schemas, value, depth - 1, budget)
        elif key in ("oneOf", "anyOf", "allOf") and isinstance(value, list):
            found[key] = _sort_values([_write_out(schemas, item, depth - 1, budget) for item in value])
        elif key in ("required", "enum") and isinstance(value, list):
            found[key] = _sort_values(value)
        else:
            found[key] = value
    return found


def _sort_values(values: list[Any]) -> list[Any]:
    return sorted(values, key=lambda value: orjson.dumps(value, option=orjson.OPT_SORT_KEYS))
