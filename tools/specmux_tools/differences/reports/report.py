"""The contents that all forms of a report share."""

from __future__ import annotations

from collections import Counter

from specmux_converters.counted_nouns import counted
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.differences.changes import Change, changes_of
from specmux_tools.differences.comparison import Comparison
from specmux_tools.differences.impacts import ChangeSeverity
from specmux_tools.differences.policy import NO_POLICY, Policy, judge


@dataclass(frozen=True, slots=True)
class Report:
    """``old`` and ``new`` are the user's names of the two sides."""

    old: str
    new: str
    changes: tuple[Change, ...]
    documentation: int
    allowed: int = 0
    """Number of places that a policy allows; they are in no change."""
    notes: tuple[str, ...] = ()

    @property
    def worst(self) -> ChangeSeverity | None:
        """None if only documentation changed."""
        return max((change.severity for change in self.changes), default=None)

    def counts(self) -> dict[ChangeSeverity, tuple[int, int]]:
        """Number of changes and places by severity, the worst first."""
        changes = Counter(change.severity for change in self.changes)
        places: Counter[ChangeSeverity] = Counter()
        for change in self.changes:
            places[change.severity] += len(change.places)
        return {severity: (changes[severity], places[severity]) for severity in reversed(ChangeSeverity)}


def report_of(
    comparison: Comparison,
    *,
    old: str,
    new: str,
    policy: Policy = NO_POLICY,
    today: str = "",
    notes: tuple[str, ...] = (),
) -> Report:
    """``today`` ("2026-11-30") expires entries of the policy; without it none expires. ``notes``: on how the
    sides were read."""
    judged = judge(comparison.places, policy, today=today)
    changes = changes_of(judged.places)
    return Report(old, new, changes, comparison.documentation, judged.allowed, (*notes, *judged.notes))


def summary_line(report: Report) -> str:
    """A one-sentence summary."""
    parts = [
        f"{changes} {severity.word}" + (f" at {counted(places, 'place')}" if places > changes else "")
        for severity, (changes, places) in report.counts().items()
        if changes
    ]
    said = ", ".join(parts) or "no changes"
    if report.documentation:
        said += f"; documentation alone differs at {counted(report.documentation, 'place')}"
    if report.allowed:
        said += f"; {counted(report.allowed, 'place')} allowed by the policy"
    return said


def concerned(change: Change) -> str:
    """The parties that have to act on the change: "writers, readers may have to, stored objects"."""
    impacts = change.impacts
    sides = (("writers", impacts.write), ("readers", impacts.read), ("stored objects", impacts.stored))
    breaks = [name for name, impact in sides if impact.word == "breaking"]
    may = [name for name, impact in sides if impact.word == "warning"]
    said = [f"breaks {_listed(breaks)}"] if breaks else []
    return ", ".join(said + ([f"may concern {_listed(may)}"] if may else []))


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
