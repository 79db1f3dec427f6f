"""Results of comparing two schemas, before impacts and places are known, and how their paths are written.

``spec.containers[].env[].name``, with ``{}`` for a map's values. Paths are built from the inside out: each
step is prepended and brings its own dot.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Set
from dataclasses import replace
from typing import Any, Final, TypeAlias

import orjson

from specmux_converters.errors import LimitExceeded
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.differences.rules import Impacts

ITEMS: Final = "[]"
VALUES: Final = "{}"
MOST_SCHEMAS: Final = 200_000
"""Most pairs of schemas in one comparison; two releases of Kubernetes have about ten thousand."""
MOST_PLACES: Final = 100_000
"""Most places in one comparison; two releases two years apart have about a thousand."""

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


def set_changes(before: Set[str], after: Set[str], removed: str, added: str) -> Iterator[Finding]:
    """A finding for each name that is in one of the two alone. ``removed`` and ``added``: ids of rules."""
    for change, names in ((removed, before - after), (added, after - before)):
        yield from (Finding(change, "", what=name) for name in sorted(names))


@dataclass(frozen=True, slots=True)
class Result:
    findings: Findings = ()
    documentation: int = 0
    """Number of places that differ only in documentation."""

    def __add__(self, other: Result) -> Result:
        if not other.findings and not other.documentation:
            return self
        return Result(self.findings + other.findings, self.documentation + other.documentation)

    def map(self, change: Callable[[Finding], Finding]) -> Result:
        return replace(self, findings=tuple(map(change, self.findings))) if self.findings else self

    def below(self, steps: str) -> Result:
        """The same, relative to the parent."""
        return self.map(lambda finding: replace(finding, steps=steps + finding.steps))

    def of_component(self, name: str) -> Result:
        """The same, as changes of a component, unless they belong to a nested one."""
        return self.map(lambda each: each if each.origin else replace(each, origin=f"{name}:{each.steps}"))


NOTHING = Result()


class ComparisonBudget:
    """Limits the cost of one comparison, since documents are untrusted.

    A change in a component with many references shows at many places, which can double with every level.
    """

    def __init__(self) -> None:
        self._schemas = 0

    def count_schema(self) -> None:
        """Count one more pair of schemas. Raises LimitExceeded."""
        self._schemas += 1
        if self._schemas > MOST_SCHEMAS:
            raise LimitExceeded("more schemas to compare than are allowed")

    def count_places(self, number: int) -> None:
        """Raises LimitExceeded."""
        if number > MOST_PLACES:
            raise LimitExceeded(f"changes at more than the {MOST_PLACES} places allowed")


def step(name: str) -> str:
    """One property: ``.name``, or ``["ca.crt"]`` if the name could be read as several steps."""
    return f".{name}" if _PLAIN.fullmatch(name) else f"[{orjson.dumps(name).decode()}]"


def show_path(steps: str) -> str:
    """The path as reports print it, without the leading dot."""
    return steps.removeprefix(".")


def is_status(path: str) -> bool:
    """Whether a printed path is the kind's status or a field of it."""
    return path == "status" or path.startswith(("status.", "status[", "status{"))
