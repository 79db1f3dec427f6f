"""What the comparison of two schemas finds, before it is known for whom and how often."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NoReturn, TypeAlias

from specmux_converters.deferred_dataclasses import dataclass
from specmux_converters.errors import LimitExceeded
from specmux_schemas.differences.verdicts.impacts import Impacts


@dataclass(frozen=True, slots=True)
class Finding:
    """One change at one place below the schema that was compared."""

    id: str
    steps: str
    """The way there (field_paths)."""
    what: Any = None
    old: Any = None
    new: Any = None
    origin: str = ""
    """Component and steps in it, where the change was made once for many places."""
    impacts: Impacts | None = None
    """Where they are other than the rule's."""


Findings: TypeAlias = tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Result:
    findings: Findings = ()
    documentation: int = 0
    """How many places differ in documentation alone."""


NOTHING = Result()


def below(result: Result, steps: str) -> Result:
    """The same, seen from one level up."""
    if not result.findings:
        return result
    moved = tuple(replace(finding, steps=steps + finding.steps) for finding in result.findings)
    return Result(moved, result.documentation)


def of_component(result: Result, component: str) -> Result:
    """The same, as changes of a component, where they are not those of one below it."""
    if not result.findings:
        return result
    owned = tuple(
        finding if finding.origin else replace(finding, origin=f"{component}:{finding.steps}")
        for finding in result.findings
    )
    return Result(owned, result.documentation)


class ComparisonBudget:
    """Bounds what one comparison may cost: documents come from anybody.

    A change in a component that others refer to many times over is at many places, which double with every
    level of references.
    """

    def __init__(self, schemas: int, places: int) -> None:
        self._schemas = schemas
        self._places = places

    def schema(self) -> None:
        """One pair of schemas more. Raises LimitExceeded."""
        self._schemas -= 1
        if self._schemas < 0:
            raise LimitExceeded("more schemas to compare than are allowed")

    def places(self, findings: Findings) -> None:
        """Raises LimitExceeded."""
        if len(findings) > self._places:
            self.places_exceeded()

    def places_exceeded(self) -> NoReturn:
        raise LimitExceeded(f"changes at more than the {self._places} places allowed")
