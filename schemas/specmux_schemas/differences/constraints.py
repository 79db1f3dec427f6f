"""What values must meet beside their type: bounds, patterns, multiples, and schemas they must not match.

Two patterns are not compared: which of them accepts more cannot be told in general.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sized
from typing import Any, Final

from specmux_schemas.differences.findings import Finding

_LOWER: Final = ("minimum", "minLength", "minItems", "minProperties")
_UPPER: Final = ("maximum", "maxLength", "maxItems", "maxProperties")
_FLAGS: Final = ("uniqueItems",)
_EXCLUSIVE: Final = ("exclusiveMinimum", "exclusiveMaximum")

KEYWORDS: Final = (*_LOWER, *_UPPER, *_EXCLUSIVE, *_FLAGS, "pattern", "multipleOf")

_SIZES: Final[Mapping[str, type[Sized]]] = {"Length": str, "Items": list, "Properties": dict}
_MOST_TEXT: Final = 1024
"""Characters of a listed value that a pattern is tried on, and of the pattern: it may be made to be slow."""


def constraint_changes(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Finding]:
    """Keyword by keyword; none for one that every value of the old enum meets."""
    for keyword in KEYWORDS:
        before, after = _set(old, keyword), _set(new, keyword)
        if before == after:
            continue
        change = _compared(keyword, before, after)
        if change == "constraint-relaxed" or not _all_meet(old.get("enum"), keyword, new):
            yield Finding(change, "", what=keyword, old=before, new=after)


def _set(schema: Mapping[str, Any], keyword: str) -> Any:
    """None where the keyword asks nothing."""
    value = schema.get(keyword)
    if keyword == "pattern":
        return value if isinstance(value, str) else None
    if isinstance(value, bool):
        return True if value and keyword in (*_EXCLUSIVE, *_FLAGS) else None
    return value if isinstance(value, int | float) else None


def _compared(keyword: str, before: Any, after: Any) -> str:
    if before is None:
        return "constraint-tightened"
    if after is None:
        return "constraint-relaxed"
    if keyword == "multipleOf":
        return _multiples(before, after)
    if keyword == "pattern" or isinstance(before, bool) or isinstance(after, bool):
        return "constraint-changed"
    is_lower = keyword in _LOWER or keyword == "exclusiveMinimum"
    return "constraint-tightened" if (after > before) == is_lower else "constraint-relaxed"


def _multiples(before: float, after: float) -> str:
    if before and after % before == 0:
        return "constraint-tightened"
    if after and before % after == 0:
        return "constraint-relaxed"
    return "constraint-changed"


def _all_meet(values: Any, keyword: str, schema: Mapping[str, Any]) -> bool:
    """Whether all values that were allowed meet the keyword; not where any were."""
    return (
        isinstance(values, list) and bool(values) and all(_meets(value, keyword, schema) for value in values)
    )


def _meets(value: Any, keyword: str, schema: Mapping[str, Any]) -> bool:
    bound = schema[keyword]
    if keyword == "pattern":
        return not isinstance(value, str) or _matches(bound, value)
    if keyword == "uniqueItems":
        return not isinstance(value, list) or all(value.count(item) == 1 for item in value)
    sized = next((of_type for ending, of_type in _SIZES.items() if keyword.endswith(ending)), None)
    if sized is not None:
        return not isinstance(value, sized) or _is_within(len(value), keyword, bound)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return True
    if keyword == "multipleOf":
        return bool(bound) and bool(value % bound == 0)
    if isinstance(bound, bool):  # OpenAPI 3.0: the bound itself stands beside it
        return bool(value != schema.get(keyword.replace("exclusiveM", "m")))
    return _is_within(value, keyword, bound)


def _is_within(value: float, keyword: str, bound: float) -> bool:
    if keyword == "exclusiveMinimum":
        return value > bound
    if keyword == "exclusiveMaximum":
        return value < bound
    return value >= bound if keyword in _LOWER else value <= bound


def _matches(pattern: str, value: str) -> bool:
    """False where Python cannot tell: RE2 and ECMA have forms of their own."""
    if len(pattern) > _MOST_TEXT or len(value) > _MOST_TEXT:
        return False
    try:
        return re.search(pattern, value) is not None
    except (re.error, RecursionError, OverflowError):
        return False
