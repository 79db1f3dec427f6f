"""Results of comparing two schemas, before impacts and places are known, and how their paths are written.

``spec.containers[].env[].name``, with ``{}`` for a map's values. Paths are built from the inside out: each
step is prepended and brings its own dot.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final, NoReturn, TypeAlias

import orjson

from specmux_converters.errors import LimitExceeded
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.differences.rules import Impacts

ITEMS: Final = "[]"
VALUES: Final = "{}"

_PLAIN: Final = re.compile(r"[^\s.\[\]{}\"\\]+")


@dataclass(frozen=True, slots=True)
class Finding:
    """A change at one place below the compared schema."""

    id: str
    steps: str
    """The path to it."""
    what: Any = None
    old: Any = None
    new: Any = None
    origin: str = ""
    """Component and path in it, if one edit affects many places."""
    impacts: Impacts | None = None
    """Impacts that differ from the rule's."""


Findings: TypeAlias = tuple[Finding, ...]


@dataclass(frozen=True, slots=True)
class Result:
    findings: Findings = ()
    documentation: int = 0
    """Number of places that differ only in documentation."""


NOTHING = Result()


def below(result: Result, steps: str) -> Result:
    """The same, relative to the parent."""
    if not result.findings:
        return result
    moved = tuple(replace(finding, steps=steps + finding.steps) for finding in result.findings)
    return Result(moved, result.documentation)


def of_component(result: Result, component: str) -> Result:
    """The same, as changes of a component, unless they belong to a nested one."""
    if not result.findings:
        return result
    owned = tuple(
        finding if finding.origin else replace(finding, origin=f"{component}:{finding.steps}")
        for finding in result.findings
    )
    return Result(owned, result.documentation)


class ComparisonBudget:
    """Limits the cost of one comparison, since documents are untrusted.

    A change in a component with many references shows at many places, which can double with every level.
    """

    def __init__(self, schemas: int, places: int) -> None:
        self._schemas = schemas
        self._places = places

    def schema(self) -> None:
        """Count one more pair of schemas. Raises LimitExceeded."""
        self._schemas -= 1
        if self._schemas < 0:
            raise LimitExceeded("more schemas to compare than are allowed")

    def places(self, findings: Findings) -> None:
        """Raises LimitExceeded."""
        if len(findings) > self._places:
            self.places_exceeded()

    def places_exceeded(self) -> NoReturn:
        raise LimitExceeded(f"changes at more than the {self._places} places allowed")


def step(name: str) -> str:
    """One property: ``.name``, or ``["ca.crt"]`` if the name could be read as several steps."""
    return f".{name}" if _PLAIN.fullmatch(name) else f"[{orjson.dumps(name).decode()}]"


def printed_path(steps: str) -> str:
    """The path as reports print it, without the leading dot."""
    return steps.removeprefix(".")


def is_status(path: str) -> bool:
    """Whether a printed path is the kind's status or a field of it."""
    return path == "status" or path.startswith(("status.", "status[", "status{"))
