"""The cost of rules as apiservers estimate it before they take a definition (apiextensions, schema/cel)."""

from __future__ import annotations

from typing import Final

from specmux_tools.validation.rules.cel.compiling import CompiledExpression
from specmux_tools.validation.rules.cel.costs.estimates import estimate
from specmux_tools.validation.rules.cel.costs.ranges import Range
from specmux_tools.validation.rules.schema_types import MOST_BYTES, Declaration

RULE_LIMIT: Final = 10_000_000
"""Of one rule, times how often it may stand in an object."""
DEFINITION_LIMIT: Final = 100_000_000
"""Of all rules of a version."""


def expression_cost(expression: CompiledExpression, declared: Declaration) -> int:
    """The most that it may cost for one value."""

    def size(path: tuple[str, ...]) -> Range | None:
        found: Declaration | None = declared
        for part in path[1:]:
            if found is None:
                return None
            if part in ("@items", "@values"):
                found = found.element
            elif part == "@keys":
                found = found.key
            else:
                found = found.fields.get(part)
        return None if found is None else Range(0, found.most)

    return estimate(expression.checked, size).most


def most_occurrences(declared: Declaration) -> int:
    """How often such a value may stand in an object where nothing else bounds it."""
    return MOST_BYTES // (declared.least_bytes + 1)
