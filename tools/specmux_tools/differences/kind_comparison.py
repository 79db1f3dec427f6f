"""Compares two versions of one kind, field by field, regardless of their group-versions.

Neither version is the older one: a difference is told as a state of the one or the other, not as an event.
"""

from __future__ import annotations

from typing import Final

from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.differences.changes import short, word
from specmux_tools.differences.findings import ComparisonBudget, show_path
from specmux_tools.differences.schema.schema_comparison import SchemaComparison
from specmux_tools.differences.schema.views import ComponentSchemas
from specmux_tools.kinds import KindSchema


@dataclass(frozen=True, slots=True, order=True)
class KindDifference:
    """``says``: which of the two has what, with short values included."""

    path: str
    says: str


def compare_kinds(old: KindSchema, new: KindSchema) -> tuple[list[KindDifference], int]:
    """The differences by path, and the number of places that differ only in descriptions. Raises
    LimitExceeded."""
    comparison = SchemaComparison(
        ComponentSchemas(old.document),
        ComponentSchemas(new.document),
        is_enforced=False,
        budget=ComparisonBudget(),
    )
    result = comparison.compare(old.schema, new.schema)
    found = set()
    left, right = (each.kind.api_version for each in (old, new))
    for each in result.findings:
        said = _describe_change(
            each.id, "" if each.what is None else word(each.what), short(each.old), short(each.new)
        )
        found.add(KindDifference(show_path(each.steps), said.format(left=left, right=right)))
    return sorted(found), result.documentation


_STATES: Final = {
    "added": "{right} only",
    "removed": "{left} only",
    "tightened": "stricter in {right}",
    "narrowed": "narrower in {right}",
    "relaxed": "stricter in {left}",
    "widened": "narrower in {left}",
    "changed": "differs",
    "became-required": "required in {right} only",
    "became-optional": "required in {left} only",
    "became-immutable": "immutable in {right} only",
    "became-mutable": "immutable in {left} only",
    "undeprecated": "deprecated in {left} only",
}
"""Texts by the end of a rule's id; what precedes it is the subject."""


def _describe_change(id: str, what: str, left: str, right: str) -> str:
    for ending, state in _STATES.items():
        if id.endswith(ending):
            subject = id.removesuffix(ending).rstrip("-").replace("-", " ")
            named = what or " / ".join(filter(None, (left, right)))
            if ending.startswith("became"):
                return state
            if ending in ("added", "removed"):
                state = f"in {state}"
            if ending == "changed" and named:
                return f"{subject}: {_literal(named)}"
            return " ".join(filter(None, (subject, _literal(named), state)))
    return f"{id.replace('-', ' ')} in {{right}} only"


def _literal(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
