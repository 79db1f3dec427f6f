"""Compares two versions of one kind, field by field, regardless of their group-versions."""

from __future__ import annotations

from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.differences.changes import Change, Location
from specmux_tools.differences.comparison import MOST_PLACES, MOST_SCHEMAS
from specmux_tools.differences.findings import ComparisonBudget
from specmux_tools.differences.impacts import ChangeSeverity
from specmux_tools.differences.rules import RULES
from specmux_tools.differences.schema.field_paths import shown
from specmux_tools.differences.schema.schema_comparison import SchemaComparison
from specmux_tools.differences.schema.views import ComponentSchemas
from specmux_tools.kinds import KindSchema


@dataclass(frozen=True, slots=True, order=True)
class KindDifference:
    """``says``: the text of the rule, with short values included."""

    path: str
    says: str


@dataclass(frozen=True, slots=True)
class KindComparison:
    """``differences``: sorted by path. ``documentation``: number of places that differ only in
    descriptions."""

    differences: tuple[KindDifference, ...]
    documentation: int


def compare_kinds(old: KindSchema, new: KindSchema) -> KindComparison:
    """Raises LimitExceeded."""
    comparison = SchemaComparison(
        ComponentSchemas(old.document),
        ComponentSchemas(new.document),
        is_enforced=False,
        budget=ComparisonBudget(MOST_SCHEMAS, MOST_PLACES),
    )
    result = comparison.compare(old.schema, new.schema)
    found = set()
    for each in result.findings:
        place = Location(new.group_version, new.kind.kind, shown(each.steps))
        change = Change(
            each.id, ChangeSeverity.NOTICE, RULES[each.id].impacts, each.what, each.old, each.new, (place,)
        )
        found.add(KindDifference(place.path, change.message))
    return KindComparison(tuple(sorted(found)), result.documentation)
