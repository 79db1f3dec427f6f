"""The forms of a report, by name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

import orjson

from specmux_converters.lazy.patterns import pattern
from specmux_converters.printing import json_text, printable
from specmux_tools.reports.finding import Case, FindingReport, Level, ReportFinding, Suite
from specmux_tools.reports.sarif import render_sarif
from specmux_tools.reports.text import finding_lines, render_text


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
        yield from _junit_case_lines(case)


def _counts(cases: Iterable[Case], *, skipped: bool) -> str:
    """``errors`` and ``time`` are required for a suite, ``skipped`` is not allowed above it."""
    listed = list(cases)
    failures = sum(case.is_failed for case in listed)
    without = f' skipped="{sum(bool(case.skipped) for case in listed)}"' if skipped else ""
    return f'tests="{len(listed)}" failures="{failures}" errors="0"{without} time="0"'


def _junit_case_lines(case: Case) -> Iterator[str]:
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


def render_tap(report: FindingReport) -> str:
    return "".join(f"{line}\n" for line in _tap_lines(report))


def _tap_lines(report: FindingReport) -> Iterator[str]:
    cases = [(suite.name, case) for suite in report.suites for case in suite.cases]
    yield "TAP version 13"
    yield f"1..{len(cases)}"
    for number, (suite, case) in enumerate(cases, 1):
        yield from _case_lines(number, suite, case)
    for line in (*report.notes, report.summary):
        if line:
            yield f"# {printable(line)}"


def _case_lines(number: int, suite: str, case: Case) -> Iterator[str]:
    name = printable(f"{suite}: {case.name}").replace("#", "\\#")
    reason = f" # SKIP {printable(case.skipped)}" if case.skipped else ""
    yield f"{'not ok' if case.is_failed else 'ok'} {number} - {name}{reason}"
    if case.is_failed:
        yield "  ---"
        for finding in case.findings:
            said = printable(f"{finding.where}: {finding.level_word}: {finding.said}")
            yield f"  - {orjson.dumps(said).decode()}"
        yield "  ..."


_OTHERS_MAX: Final = 20
"""Of one finding; the JSON form has all."""
_MARKS: Final = pattern(r"([\\`*_{}\[\]<>#|~!])")


def render_markdown(report: FindingReport) -> str:
    lines = [f"# {_escaped(report.title)}", ""]
    if report.summary:
        lines += [f"{_escaped(report.summary)}.", ""]
    lines += [f"> {_escaped(note)}" for note in report.notes]
    for level in Level:
        findings = [finding for finding in report.findings if finding.level is level]
        if findings:
            lines += [f"## {_heading(findings[0])}", ""]
            lines += [line for finding in findings for line in _markdown_lines(report, finding)]
            lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def _heading(finding: ReportFinding) -> str:
    word = finding.level_word.capitalize()
    return word if word.endswith("ing") and finding.level is Level.ERROR else f"{word}s"


def _markdown_lines(report: FindingReport, finding: ReportFinding) -> Iterator[str]:
    said = "; ".join(filter(None, (finding.rule, finding.detail)))
    yield f"* {_code(report.place(finding))}: {_escaped(finding.message)} ({_escaped(said)})"
    for other in finding.others[:_OTHERS_MAX]:
        yield f"  * {_code(other)}"
    if len(finding.others) > _OTHERS_MAX:
        yield f"  * and {len(finding.others) - _OTHERS_MAX} more"


def _code(text: str) -> str:
    """A code span; its fence is longer than any run of backticks in it (CommonMark 6.1)."""
    shown = printable(text)
    runs = [len(run) for run in re.findall(r"`+", shown)]
    fence = "`" * (max(runs, default=0) + 1)
    return f"{fence} {shown} {fence}" if runs else f"`{shown}`"


def _escaped(text: str) -> str:
    return _MARKS.sub(r"\\\1", printable(text))


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


FORMS: Final = ("text", "json", "markdown", "junit", "tap", "sarif", "github")


def render(report: FindingReport, form: str, *, is_coloured: bool = False, version: str = "0") -> bytes:
    """UTF-8. ``is_coloured`` concerns the text; ``version``: of the program.

    Raises ValueError for a name that is not one of FORMS.
    """
    match form:
        case "text":
            written = render_text(report, is_coloured=is_coloured)
        case "json":
            written = json_text(report.document)
        case "markdown":
            written = render_markdown(report)
        case "junit":
            written = render_junit(report)
        case "tap":
            written = render_tap(report)
        case "sarif":
            written = render_sarif(report, version=version)
        case "github":
            written = render_github(report)
        case _:
            raise ValueError(f"{form!r} is none of {', '.join(FORMS)}")
    return written.encode()
