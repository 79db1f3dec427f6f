"""Decides whether branches exclude each other or constrain nothing, by required fields, enums and bounds.

The answer is "may overlap" wherever the schemas do not say otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from specmux_converters.json_values import array
from specmux_tools.differences.schema.constraints import LOWER, UPPER, Limit, limits_of
from specmux_tools.differences.schema.values import text

_NUMBERS: Final = frozenset({"integer", "number"})
_BOUNDS: Final = frozenset({*LOWER, *UPPER, "exclusiveMinimum", "exclusiveMaximum"})
_MOST_DEEP: Final = 4


def may_overlap(
    one: Mapping[str, Any], other: Mapping[str, Any], holder: Mapping[str, Any], depth: int = 0
) -> bool:
    """``one`` and ``other`` have no references left; ``holder`` is the schema that both are branches of."""
    if depth > _MOST_DEEP:
        return True
    return not (
        _types_differ(one, other)
        or _values_differ(one, other)
        or _ranges_differ(one, other, holder)
        or _is_refused_by(one, other)
        or _is_refused_by(other, one)
        or _is_too_much(one, other, holder)
        or _fields_differ(one, other, holder, depth)
    )


def is_implied(branch: Mapping[str, Any], holder: Mapping[str, Any], depth: int = 0) -> bool:
    """Whether every value that ``holder`` accepts fits the branch, so that the branch constrains nothing."""
    if depth > _MOST_DEEP:
        return False
    typed = {**branch, **{key: holder[key] for key in ("type", "format") if key in holder}}
    asked, held = limits_of(typed), limits_of(holder)
    for key, limit in asked.items():
        if key not in held or _tighter(limit, held[key], is_lower=key in LOWER) != held[key]:
            return False
    return all(
        key in _BOUNDS or value == holder.get(key) or _is_met(key, value, holder, depth)
        for key, value in branch.items()
    )


def _is_met(key: str, value: Any, holder: Mapping[str, Any], depth: int) -> bool:
    if key == "required":
        return _required({key: value}) <= _required(holder)
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


def _tighter(one: Limit, other: Limit, *, is_lower: bool) -> Limit:
    if one[0] == other[0]:
        return one if one[1] else other
    return one if (one[0] > other[0]) == is_lower else other


def _types_differ(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    types = {one.get("type"), other.get("type")}
    return None not in types and len(types) == 2 and types != _NUMBERS


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
        return set(wider["required"]) <= _required(one)
    return wider.items() <= one.items()


def _is_too_much(one: Mapping[str, Any], other: Mapping[str, Any], holder: Mapping[str, Any]) -> bool:
    most = holder.get("maxProperties")
    needed = _required(one) | _required(other) | _required(holder)
    return isinstance(most, int) and len(needed) > most


def _fields_differ(
    one: Mapping[str, Any], other: Mapping[str, Any], holder: Mapping[str, Any], depth: int
) -> bool:
    """Compares a field that both require and whose values exclude each other: a discriminator."""
    fields = one.get("properties"), other.get("properties")
    if not isinstance(fields[0], dict) or not isinstance(fields[1], dict):
        return False
    always = _required(holder)
    needed = (_required(one) | always) & (_required(other) | always)
    return any(
        isinstance(fields[0][name], dict)
        and isinstance(fields[1][name], dict)
        and not may_overlap(fields[0][name], fields[1][name], {}, depth + 1)
        for name in needed & fields[0].keys() & fields[1].keys()
    )


def _required(schema: Mapping[str, Any]) -> set[str]:
    return (
        {name for name in schema["required"] if isinstance(name, str)}
        if _is_list(schema, "required")
        else set()
    )


def _is_list(schema: Mapping[str, Any], keyword: str) -> bool:
    return isinstance(schema.get(keyword), list)
