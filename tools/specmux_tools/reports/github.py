"""A report as workflow commands of GitHub Actions: each becomes an annotation of its line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from specmux_converters.printing import printable
from specmux_tools.reports.finding import FindingReport, Level, ReportFinding
from specmux_tools.reports.text import finding_lines

ANNOTATIONS_MAX: Final = 10
"""Annotations per level and step that GitHub shows; further ones are only in the log."""

_COMMANDS: Final = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}


def render_github(report: FindingReport) -> str:
    return "".join(f"{line}\n" for line in _lines(report))


def _lines(report: FindingReport) -> Iterator[str]:
    shown: Counter[Level] = Counter()
    rest: list[ReportFinding] = []
    for finding in sorted(report.findings, key=lambda each: [*Level].index(each.level)):
        shown[finding.level] += 1
        if shown[finding.level] <= ANNOTATIONS_MAX:
            yield _annotation(report, finding)
        else:
            rest.append(finding)
    yield from (_data(f" {line}") for finding in rest for line in finding_lines(report, finding))
    yield from map(_data, report.notes)
    hidden = f"{len(rest)} {report.noun} are not shown as annotations" if rest else ""
    if report.summary or hidden:
        yield _data("; ".join(filter(None, (report.summary, hidden))))


def _annotation(report: FindingReport, finding: ReportFinding) -> str:
    where = finding.where
    properties = {"file": where.file, "line": where.line, "col": where.column} if where.line else {}
    properties["title"] = finding.title or finding.rule
    written = ",".join(f"{name}={_property(str(value))}" for name, value in properties.items() if value)
    more = f" (and {len(finding.others)} more)" if finding.others else ""
    if finding.title:  # the title already contains the subject
        said = finding.message
    else:
        said = f"{finding.subject}{more}: {finding.said}" if finding.subject else finding.said
    return f"::{_COMMANDS[finding.level]} {written}::{_data(said)}"


def _data(text: str) -> str:
    """Escaped as by the runner's toolkit."""
    return printable(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
