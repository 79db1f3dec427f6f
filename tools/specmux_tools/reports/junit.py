"""A report as test results, valid under Jenkins' junit-10.xsd: a case fails for what fails the command."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from specmux_converters.printing import printable
from specmux_tools.reports.finding import Case, FindingReport, ReportFinding, Suite


def render_junit(report: FindingReport) -> str:
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    lines.append(f"<testsuites name={_attribute(report.command)} {_counts([*report.cases], skipped=False)}>")
    for suite in report.suites:
        lines += _suite_lines(suite)
        said = "\n".join(filter(None, (report.summary, *report.notes)))
        if said:
            lines.append(f"    <system-out>{_text(said)}</system-out>")
        lines.append("  </testsuite>")
    return "".join(f"{line}\n" for line in (*lines, "</testsuites>"))


def _suite_lines(suite: Suite) -> Iterator[str]:
    yield f"  <testsuite name={_attribute(suite.name)} {_counts(suite.cases, skipped=True)}>"
    for case in suite.cases:
        yield from _case_lines(case)


def _counts(cases: Iterable[Case], *, skipped: bool) -> str:
    """``errors`` and ``time`` are required for a suite, ``skipped`` is not allowed above it."""
    listed = list(cases)
    failures = sum(case.is_failed for case in listed)
    without = f' skipped="{sum(bool(case.skipped) for case in listed)}"' if skipped else ""
    return f'tests="{len(listed)}" failures="{failures}" errors="0"{without} time="0"'


def _case_lines(case: Case) -> Iterator[str]:
    head = f'    <testcase name={_attribute(case.name)} classname={_attribute(case.group)} time="0"'
    inside = [_failure(finding) for finding in case.findings if finding.fails]
    if case.skipped:
        inside.append(f"<skipped message={_attribute(case.skipped)}/>")
    others = "\n".join(_text(_said(finding)) for finding in case.findings if not finding.fails)
    if others:
        inside.append(f"<system-out>{others}</system-out>")
    if not inside:
        yield f"{head}/>"
        return
    yield f"{head}>"
    yield from (f"      {each}" for each in inside)
    yield "    </testcase>"


def _failure(finding: ReportFinding) -> str:
    attributes = f"message={_attribute(finding.message)} type={_attribute(finding.rule)}"
    lines = [_said(finding), *finding.others]
    return f"<failure {attributes}>{chr(10).join(map(_text, lines))}</failure>"


def _said(finding: ReportFinding) -> str:
    parts = (str(finding.where), finding.level_word, finding.subject, finding.said)
    return ": ".join(filter(None, parts))


def _attribute(text: str) -> str:
    from xml.sax.saxutils import quoteattr  # brings urllib and http: only where XML is written

    return quoteattr(printable(text))


def _text(text: str) -> str:
    from xml.sax.saxutils import escape

    return escape(printable(text))
