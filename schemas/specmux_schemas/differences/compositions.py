"""``oneOf``, ``anyOf`` and ``not``: branches as sets, since no order of them means anything.

A branch is compared as a whole, written out and without documentation. Which values two different branches
have in common is not worked out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import orjson

from specmux_schemas.differences.findings import Budget, Finding
from specmux_schemas.differences.views import Schemas

DOCUMENTATION: Final = frozenset(
    {"description", "title", "example", "examples", "externalDocs", "deprecated"}
)
_MOST_DEEP: Final = 12
"""Levels of a branch that are told apart."""

Side = tuple[Schemas, Mapping[str, Any]]


def composition_changes(
    old: Side, new: Side, *, types_of: tuple[str | None, str | None], budget: Budget
) -> Iterator[Finding]:
    """``types_of``: the keywords whose branches say types alone; those are compared as types."""
    for keyword in ("oneOf", "anyOf"):
        before = set[bytes]() if types_of[0] == keyword else _branches(*old, keyword, budget)
        after = set[bytes]() if types_of[1] == keyword else _branches(*new, keyword, budget)
        if before == after:
            continue
        yield Finding(_change(before, after), "", what=keyword)
    before, after = _branches(*old, "not", budget), _branches(*new, "not", budget)
    if before != after:
        yield Finding(_change_of_not(before, after), "", what="not")


def _change(before: set[bytes], after: set[bytes]) -> str:
    if not before:
        return "constraint-tightened"
    if not after:
        return "constraint-relaxed"
    if before > after:
        return "branch-removed"
    return "branch-added" if before < after else "composition-changed"


def _change_of_not(before: set[bytes], after: set[bytes]) -> str:
    if before and after:
        return "composition-changed"
    return "constraint-relaxed" if before else "constraint-tightened"


def _branches(schemas: Schemas, keywords: Mapping[str, Any], keyword: str, budget: Budget) -> set[bytes]:
    value = keywords.get(keyword)
    branches = value if isinstance(value, list) else [value] if isinstance(value, dict) else []
    return {
        orjson.dumps(_written_out(schemas, branch, _MOST_DEEP, budget), option=orjson.OPT_SORT_KEYS)
        for branch in branches
    }


def _written_out(schemas: Schemas, schema: Any, depth: int, budget: Budget) -> Any:
    """The schema without references and documentation; what lies too deep is left out."""
    if not isinstance(schema, dict) or depth == 0:
        return schema if isinstance(schema, bool) else None
    budget.schema()
    found: dict[str, Any] = {}
    for key, value in schemas.view(schema).keywords.items():
        if key in DOCUMENTATION:
            continue
        if key == "properties" and isinstance(value, dict):
            found[key] = {
                name: _written_out(schemas, item, depth - 1, budget) for name, item in value.items()
            }
        elif key in ("items", "additionalProperties", "not"):
            found[key] = _written_out(schemas, value, depth - 1, budget)
        elif key in ("oneOf", "anyOf") and isinstance(value, list):
            found[key] = _sorted([_written_out(schemas, item, depth - 1, budget) for item in value])
        elif key in ("required", "enum") and isinstance(value, list):
            found[key] = _sorted(value)
        else:
            found[key] = value
    return found


def _sorted(values: list[Any]) -> list[Any]:
    return sorted(values, key=lambda value: orjson.dumps(value, option=orjson.OPT_SORT_KEYS))
