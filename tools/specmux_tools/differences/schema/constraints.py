"""Constraints beside the type: enums, defaults, bounds, patterns and multiples. Values are compared by JSON
equality: 1 and "1" differ, 1 and true differ, member order is irrelevant.

Two patterns are never ordered: which of them accepts more is undecidable in general.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sized
from typing import Any, Final, TypeGuard

import orjson

from specmux_converters.json_values import array, texts
from specmux_tools.differences.findings import Finding
from specmux_tools.differences.schema.views import conjuncts

LOWER: Final = ("minimum", "minLength", "minItems", "minProperties")
UPPER: Final = ("maximum", "maxLength", "maxItems", "maxProperties")
_FLAGS: Final = ("uniqueItems",)
_EXCLUSIVE: Final = {"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"}

KEYWORDS: Final = (*LOWER, *UPPER, *_EXCLUSIVE, *_FLAGS, "multipleOf")

_ASKING: Final = frozenset({*KEYWORDS, "pattern", "allOf"})

_ZERO: Final[tuple[Any, ...]] = ("", 0, 0.0, False, {}, [], None)
_ABSENT: Final = object()
_SIZES: Final[Mapping[str, type[Sized]]] = {"Length": str, "Items": list, "Properties": dict}
_RANGES: Final = {"int32": 2**31, "int64": 2**63}
"""The range of an integer, by format."""
_PRESERVES: Final = "x-kubernetes-preserve-unknown-fields"
_MOST_LISTED: Final = 64
"""Most whole numbers in a range that are compared with an enum one by one."""
_MOST_TEXT: Final = 1024
"""Longest enum value and longest pattern, in characters, that are matched: a hostile pattern may be slow."""

Limit = tuple[float, bool]
"""A bound, and whether it is exclusive."""


def enum_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Finding]:
    """Compares enums as sets, without null, which ``nullable`` covers. An enum that lists the whole range of
    an integer asks for nothing new."""
    before, after = _list(old), _list(new)
    if before is None or after is None:
        if before is not None:
            yield Finding("enum-removed", "", old=list(before.values()))
        elif after is not None and not any(values <= after.keys() for values in _whole_values(old)):
            yield Finding("enum-added", "", new=list(after.values()))
        return
    for key in sorted(before.keys() - after.keys()):
        yield Finding("enum-value-removed", "", what=before[key])
    for key in sorted(after.keys() - before.keys()):
        yield Finding("enum-value-added", "", what=after[key])


def constraint_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Finding]:
    """Yields a finding per keyword; none for a constraint that every value of the old enum satisfies, or that
    is only spelled in another way."""
    if _ASKING.isdisjoint(old) and _ASKING.isdisjoint(new):
        return
    before_limits, after_limits = limits_of(old), limits_of(new)
    for keyword in KEYWORDS:
        before, after = _value_in_force(old, keyword), _value_in_force(new, keyword)
        if before == after:
            continue
        bound = _EXCLUSIVE.get(keyword, keyword)
        change = _compare_bounds(keyword, before, after)
        if bound in (*LOWER, *UPPER):
            limits = before_limits.get(bound), after_limits.get(bound)
            if limits[0] == limits[1] or change != compare_limits(bound, *limits):
                continue
        if change == "constraint-relaxed" or not _all_meet(old, keyword, new):
            yield Finding(change, "", what=keyword, old=before, new=after)
    yield from _pattern_changes(old, new)


def limits_of(schema: Mapping[str, Any]) -> dict[str, Limit]:
    """The bounds as they are enforced, by keyword: whole numbers for integers; bounds without effect are left
    out."""
    found = {}
    for keyword in (*LOWER, *UPPER):
        limit = _limit(schema, keyword)
        if limit is not None and not _is_vacuous(limit, keyword, schema):
            found[keyword] = limit
    return found


def _list(schema: Mapping[str, Any]) -> dict[bytes, Any] | None:
    values = schema.get("enum")
    if not isinstance(values, list):
        return None
    return {text(value): value for value in values if value is not None}


def _whole_values(schema: Mapping[str, Any]) -> Iterator[set[bytes]]:
    """The texts of all values of an integer whose bounds are near; nothing for another schema."""
    limits = limits_of(schema)
    if schema.get("type") == "integer" and {"minimum", "maximum"} <= limits.keys():
        low, high = limits["minimum"][0], limits["maximum"][0]
        if 0 <= high - low < _MOST_LISTED:
            yield {text(value) for value in range(int(low), int(high) + 1)}


def _limit(schema: Mapping[str, Any], keyword: str) -> Limit | None:
    value = schema.get(keyword)
    limits: list[Limit] = [(value, False)] if _is_number(value) else []
    for flag in (flag for flag, bound in _EXCLUSIVE.items() if bound == keyword):
        exclusive = schema.get(flag)
        if exclusive is True:
            limits = [(bound, True) for bound, _ in limits]
        elif _is_number(exclusive):
            limits.append((exclusive, True))
    if not limits:
        return None
    is_lower = keyword in LOWER
    limit = max(limits) if is_lower else min(limits, key=lambda each: (each[0], not each[1]))
    is_whole = schema.get("type") == "integer" and keyword in _EXCLUSIVE.values()
    if not is_whole or not math.isfinite(limit[0]):
        return limit
    whole = math.ceil(limit[0]) if is_lower else math.floor(limit[0])
    if limit[1] and whole == limit[0]:
        whole += 1 if is_lower else -1
    return whole, False


def _is_vacuous(limit: Limit, keyword: str, schema: Mapping[str, Any]) -> bool:
    """Whether no value of the schema is beyond the limit."""
    if keyword in LOWER[1:]:
        return limit[0] <= (len(required_names(schema)) if keyword == "minProperties" else 0)
    if keyword == "maxProperties" and "additionalProperties" not in schema and not schema.get(_PRESERVES):
        fields = schema.get("properties")
        return isinstance(fields, dict) and 0 < len(fields) <= limit[0]
    most = _RANGES.get(str(schema.get("format"))) if schema.get("type") == "integer" else None
    if most is None or keyword not in ("minimum", "maximum"):
        return False
    return limit[0] <= -most if keyword == "minimum" else limit[0] >= most - 1


def compare_limits(keyword: str, before: Limit | None, after: Limit | None) -> str:
    if before is None or after is None:
        is_tighter = before is None
    elif before[0] == after[0]:
        is_tighter = after[1]
    else:
        is_tighter = (after[0] > before[0]) == (keyword in LOWER)
    return "constraint-tightened" if is_tighter else "constraint-relaxed"


def _pattern_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Finding]:
    """Compares patterns, which all apply, as sets."""
    before, after = _patterns(old), _patterns(new)
    gone, added = sorted(before - after), sorted(after - before)
    if not gone and not added:
        return
    change = (
        "constraint-changed" if gone and added else "constraint-tightened" if added else "constraint-relaxed"
    )
    if len(added) > len(gone):
        change = "constraint-tightened"
    listed = array(old.get("enum"))
    is_met = bool(listed) and all(_matches(pattern, value) for value in texts(listed) for pattern in added)
    if change == "constraint-relaxed" or not is_met:
        yield Finding(change, "", what="pattern", old=_together(before), new=_together(after))


def _patterns(schema: Mapping[str, Any]) -> set[str]:
    return set(texts(conjuncts(schema, "pattern")))


def _together(patterns: set[str]) -> str | None:
    return " and ".join(sorted(patterns)) or None


def _value_in_force(schema: Mapping[str, Any], keyword: str) -> Any:
    """The value of the keyword; None if it has no effect."""
    value = schema.get(keyword)
    if isinstance(value, bool):
        return True if value and keyword in (*_EXCLUSIVE, *_FLAGS) else None
    if keyword == "multipleOf" and value == 1 and schema.get("type") == "integer":
        return None
    return value if _is_number(value) else None


def _compare_bounds(keyword: str, before: Any, after: Any) -> str:
    if before is None:
        return "constraint-tightened"
    if after is None:
        return "constraint-relaxed"
    if keyword == "multipleOf":
        if before and after % before == 0:
            return "constraint-tightened"
        return "constraint-relaxed" if after and before % after == 0 else "constraint-changed"
    if isinstance(before, bool) or isinstance(after, bool):
        return "constraint-changed"
    is_lower = _EXCLUSIVE.get(keyword, keyword) in LOWER
    return "constraint-tightened" if (after > before) == is_lower else "constraint-relaxed"


def _all_meet(old: Mapping[str, Any], keyword: str, schema: Mapping[str, Any]) -> bool:
    """Whether all formerly valid values satisfy the keyword: those of an enum, and objects by their
    properties."""
    if keyword == "minProperties" and len(required_names(old)) >= schema[keyword]:
        return True
    values = array(old.get("enum"))
    return bool(values) and all(_meets(value, keyword, schema) for value in values)


def takes(schema: Mapping[str, Any], value: Any) -> bool | None:
    """Whether a branch accepts an enum value; None if it has keywords that are not evaluated here."""
    verdicts = [_takes(schema, keyword, asked, value) for keyword, asked in schema.items()]
    if False in verdicts:
        return False
    return None if None in verdicts else True


def _takes(schema: Mapping[str, Any], keyword: str, asked: Any, value: Any) -> bool | None:
    if keyword in KEYWORDS:
        return _value_in_force(schema, keyword) is None or _meets(value, keyword, schema)
    if keyword == "enum" and isinstance(asked, list):
        return text(value) in {text(each) for each in asked}
    if keyword == "not" and isinstance(asked, dict):
        refused = takes(asked, value)
        return None if refused is None else not refused
    if keyword == "pattern" and isinstance(asked, str):
        return not isinstance(value, str) or _matches(asked, value) or None
    return None


def _meets(value: Any, keyword: str, schema: Mapping[str, Any]) -> bool:
    bound = schema[keyword]
    if keyword == "uniqueItems":
        return not isinstance(value, list) or all(value.count(item) == 1 for item in value)
    sized = next((of_type for ending, of_type in _SIZES.items() if keyword.endswith(ending)), None)
    if sized is not None:
        return not isinstance(value, sized) or _is_within(len(value), keyword, bound)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return True
    if keyword == "multipleOf":
        return bool(bound) and bool(value % bound == 0)
    if isinstance(bound, bool):  # OpenAPI 3.0: a boolean; the bound itself is the sibling keyword
        return bool(value != schema.get(keyword.replace("exclusiveM", "m")))
    return _is_within(value, keyword, bound)


def _is_within(value: float, keyword: str, bound: float) -> bool:
    if keyword == "exclusiveMinimum":
        return value > bound
    if keyword == "exclusiveMaximum":
        return value < bound
    return value >= bound if keyword in LOWER else value <= bound


def required_names(schema: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(texts(schema.get("required")))


def _is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _matches(pattern: str, value: str) -> bool:
    """False if Python cannot compile the pattern: RE2 and ECMA 262 have syntax of their own."""
    if len(pattern) > _MOST_TEXT or len(value) > _MOST_TEXT:
        return False
    try:
        return re.search(pattern, value) is not None
    except (re.error, RecursionError, OverflowError):
        return False


def text(value: Any) -> bytes:
    """The canonical text of a value."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def default_changes(
    old: Mapping[str, Any], new: Mapping[str, Any], *, is_enforced: bool
) -> Iterator[Finding]:
    before, after = default_of(old, is_enforced=is_enforced), default_of(new, is_enforced=is_enforced)
    if before is _ABSENT and after is _ABSENT:
        return
    if before is _ABSENT:
        yield Finding("default-added", "", new=after)
    elif after is _ABSENT:
        yield Finding("default-removed", "", old=before)
    elif text(before) != text(after):
        yield Finding("default-changed", "", old=before, new=after)


def has_default(schema: Mapping[str, Any], *, is_enforced: bool) -> bool:
    return default_of(schema, is_enforced=is_enforced) is not _ABSENT


def default_of(schema: Mapping[str, Any], *, is_enforced: bool) -> Any:
    """The default. In a descriptive schema, Go's zero values mean that there is none."""
    if "default" not in schema:
        return _ABSENT
    value = schema["default"]
    if not is_enforced and any(value == zero and type(value) is type(zero) for zero in _ZERO):
        return _ABSENT
    return value
