"""A comparison as a report: its changes, its members for programs, and its findings in every form.

The members of the JSON are stable; ``format`` increases if they change.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from typing import Any, Final

from specmux_converters.counted_nouns import counted
from specmux_converters.group_versions import GroupVersion
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools import reports
from specmux_tools.differences.changes import Change, Location, changes_of
from specmux_tools.differences.comparison import Comparison
from specmux_tools.differences.policy import NO_POLICY, Policy, judge
from specmux_tools.differences.rules import RULES, SEVERITIES, ChangeSeverity, Impact, Impacts
from specmux_tools.reports import Case, Level, ReportFinding, Suite, Where


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


def list_concerned(change: Change) -> str:
    """The parties that have to act on the change: "writers, readers may have to, stored objects"."""
    sides = list(zip(("writers", "readers", "stored objects"), change.impacts, strict=True))
    breaks = [name for name, impact in sides if impact is Impact.BREAKING]
    may = [name for name, impact in sides if impact is Impact.WARNING]
    said = [f"breaks {_join_names(breaks)}"] if breaks else []
    return ", ".join(said + ([f"may concern {_join_names(may)}"] if may else []))


def _join_names(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


FORMAT: Final = "specmux.changes/v1"


def report_object(report: Report) -> dict[str, Any]:
    counts = report.counts()
    summary = {
        **{severity.word: changes for severity, (changes, _) in counts.items()},
        "places": {severity.word: places for severity, (_, places) in counts.items()},
        "documentation": report.documentation,
        "allowed": report.allowed,
        "notes": list(report.notes),
    }
    changes = [change_object(change) for change in report.changes]
    return {"format": FORMAT, "old": report.old, "new": report.new, "summary": summary, "changes": changes}


def change_object(change: Change) -> dict[str, Any]:
    return {
        "id": change.id,
        "severity": change.severity.word,
        "impact": {side: impact.word for side, impact in change.impacts._asdict().items()},
        **_location(change.location),
        "what": change.what,
        "old": change.old,
        "new": change.new,
        "message": change.message,
        "fingerprint": change.fingerprint,
        "places": [_location(place) for place in change.places],
        **({} if change.where is None else {"where": asdict(change.where)}),
    }


def read_change(value: dict[str, Any]) -> Change:
    """Reads a change written by ``change_object``."""
    impacts = (Impact[value["impact"][side].upper()] for side in Impacts._fields)
    return Change(
        id=value["id"],
        severity=SEVERITIES[value["severity"]],
        impacts=Impacts(*impacts),
        what=value["what"],
        old=value["old"],
        new=value["new"],
        places=tuple(
            Location(GroupVersion(place["groupVersion"]), place["kind"], place["path"])
            for place in value["places"]
        ),
    )


def _location(place: Location) -> dict[str, str]:
    return {"groupVersion": place.group_version, "kind": place.kind, "path": place.path}


_LEVELS: Final = {
    ChangeSeverity.BREAKING: Level.ERROR,
    ChangeSeverity.WARNING: Level.WARNING,
    ChangeSeverity.NOTICE: Level.NOTE,
}


def render(
    report: Report,
    form: str,
    *,
    fail_on: ChangeSeverity | None = ChangeSeverity.BREAKING,
    coloured: bool = False,
    version: str = "0",
) -> str:
    """``fail_on``: the lowest severity that fails a test; ``coloured`` applies to text.

    Raises ValueError for a form outside FORMS.
    """
    made = finding_report(report, fail_on)
    return reports.render(made, form, is_coloured=coloured, version=version).decode()


def finding_report(report: Report, fail_on: ChangeSeverity | None) -> reports.FindingReport:
    """``fail_on``: the lowest severity that fails a test."""
    cases = tuple(_case(report, change, fail_on) for change in report.changes)
    title = f"{report.old} to {report.new}"
    return reports.FindingReport(
        command="specmux diff",
        title=title,
        suites=(Suite(title, cases or (Case("no changes", "specmux.diff"),)),),
        document=report_object(report),
        summary=summary_line(report),
        notes=report.notes,
        rules={name: rule.says.replace("{what}", "something") for name, rule in RULES.items()},
        noun="changes",
        is_placed=False,
    )


def _case(report: Report, change: Change, fail_on: ChangeSeverity | None) -> Case:
    location = str(change.location)
    finding = ReportFinding(
        rule=change.id,
        level=_LEVELS[change.severity],
        message=change.message,
        where=change.where or Where(report.new),
        subject=location,
        detail=list_concerned(change),
        others=tuple(map(str, change.places[1:])),
        word=change.severity.word,
        fails=fail_on is not None and change.severity >= fail_on,
        fingerprint=change.fingerprint,
    )
    return Case(f"{change.id} {location}", change.location.group_version or "specmux", (finding,))
