"""Renders a comparison as a report: a change is a finding and a test that may fail."""

from __future__ import annotations

from typing import Final

from specmux_tools import reports
from specmux_tools.differences.changes import Change
from specmux_tools.differences.impacts import ChangeSeverity
from specmux_tools.differences.reports.json_report import report_object
from specmux_tools.differences.reports.report import Report, concerned, summary_line
from specmux_tools.differences.rules import RULES
from specmux_tools.reports import Case, Level, ReportFinding, Suite, Where

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
        detail=concerned(change),
        others=tuple(map(str, change.places[1:])),
        word=change.severity.word,
        fails=fail_on is not None and change.severity >= fail_on,
        fingerprint=change.fingerprint,
    )
    return Case(f"{change.id} {location}", change.location.group_version or "specmux", (finding,))
