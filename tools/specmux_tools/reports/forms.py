"""The forms of a report, by name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import orjson

from specmux_converters.lazy.patterns import pattern
from specmux_converters.printing import json_text, printable
from specmux_tools.reports.finding import Case, FindingReport, Level, ReportFinding


def render_junit(report: FindingReport) -> str:
    lines = ['<?xml version="1.0" encoding="UTF-8"?>']
    lines.append(f"<testsuites name={_attribute(report.command)} {_counts([*report.cases], skipped=False)}>")
    for suite in report.suites:
        lines.append(f"  <testsuite name={_attribute(suite.name)} {_counts(suite.cases, skipped=True)}>")
        for case in suite.cases:
            lines += _junit_case_lines(case)
        said = "\n".join(filter(None, (report.summary, *report.notes)))
        if said:
            lines.append(f"    <system-out>{_text(said)}</system-out>")
        lines.append("  </testsuite>")
    return _join_lines((*lines, "</testsuites>"))


def _join_lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


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
    others = "\n".join(_text(_describe_finding(finding)) for finding in case.findings if not finding.fails)
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
    lines = [_describe_finding(finding), *finding.others]
    return f"<failure {attributes}>{chr(10).join(map(_text, lines))}</failure>"


def _describe_finding(finding: ReportFinding) -> str:
    parts = (str(finding.where), finding.level_word, finding.subject, finding.said)
    return ": ".join(filter(None, parts))


def _attribute(text: str) -> str:
    from xml.sax.saxutils import quoteattr  # brings urllib and http: only where XML is written

    return quoteattr(printable(text))


def _text(text: str) -> str:
    from xml.sax.saxutils import escape

    return escape(printable(text))


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
"""Further places of one finding; the JSON form has all."""
_MARKS: Final = pattern(r"([\\`*_{}\[\]<>#|~!])")


def render_markdown(report: FindingReport) -> str:
    lines = [f"# {_escape_text(report.title)}", ""]
    if report.summary:
        lines += [f"{_escape_text(report.summary)}.", ""]
    lines += [f"> {_escape_text(note)}" for note in report.notes]
    for level in Level:
        findings = [finding for finding in report.findings if finding.level is level]
        if findings:
            word = findings[0].level_word.capitalize()
            is_whole = word.endswith("ing") and level is Level.ERROR  # as "Breaking"
            lines += [f"## {word if is_whole else f'{word}s'}", ""]
            lines += [line for finding in findings for line in _markdown_lines(report, finding)]
            lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def _markdown_lines(report: FindingReport, finding: ReportFinding) -> Iterator[str]:
    said = "; ".join(filter(None, (finding.rule, finding.detail)))
    yield f"* {_code(report.place(finding))}: {_escape_text(finding.message)} ({_escape_text(said)})"
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


def _escape_text(text: str) -> str:
    return _MARKS.sub(r"\\\1", printable(text))


ANNOTATIONS_MAX: Final = 10
"""Annotations per level and step that GitHub shows; further ones are only in the log."""

_COMMANDS: Final = {Level.ERROR: "error", Level.WARNING: "warning", Level.NOTE: "notice"}


def _github_lines(report: FindingReport) -> Iterator[str]:
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
            written = _join_lines(_text_lines(report, is_coloured))
        case "json":
            written = json_text(report.document)
        case "markdown":
            written = render_markdown(report)
        case "junit":
            written = render_junit(report)
        case "tap":
            written = _join_lines(_tap_lines(report))
        case "sarif":
            written = render_sarif(report, version=version)
        case "github":
            written = _join_lines(_github_lines(report))
        case _:
            raise ValueError(f"{form!r} is none of {', '.join(FORMS)}")
    return written.encode()


_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_URL_MARKS: Final = "/:?#[]@!$&'()*+,;=~"


def render_sarif(report: FindingReport, *, version: str) -> str:
    used = sorted({finding.rule for finding in report.findings})
    rules = [{"id": rule, "shortDescription": {"text": report.rules.get(rule, rule)}} for rule in used]
    run: dict[str, Any] = {
        "tool": {"driver": {"name": "specmux", "version": version, "rules": rules}},
        "results": [_result(finding, used) for finding in report.findings],
        "columnKind": "unicodeCodePoints",
    }
    if report.notes:
        said = [{"level": "note", "message": {"text": printable(note)}} for note in report.notes]
        run["invocations"] = [{"executionSuccessful": True, "toolExecutionNotifications": said}]
    return json_text({"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]})


def _result(finding: ReportFinding, rules: Sequence[str]) -> dict[str, Any]:
    where = finding.where
    # Code scanning requires a line for every result.
    region = {"startLine": where.line or 1}
    if where.column:
        region["startColumn"] = where.column
    subject = f"{finding.subject}: " if finding.subject else ""
    members = [name for name in (where.pointer or finding.subject, *finding.others) if name] or ["/"]
    return {
        "ruleId": finding.rule,
        "ruleIndex": rules.index(finding.rule),
        "level": finding.level.value,
        "message": {"text": printable(subject + finding.said)},
        "locations": [
            {
                "physicalLocation": {"artifactLocation": {"uri": _uri(where.file)}, "region": region},
                "logicalLocations": [
                    {"fullyQualifiedName": printable(name), "kind": "member"} for name in members
                ],
            }
        ],
        "partialFingerprints": {"specmuxFinding/v1": finding.identity},
    }


def _uri(file: str) -> str:
    """A URI reference (RFC 3986); a URL remains unchanged."""
    from urllib.parse import quote  # takes as long to import as all else here

    marks = f"{_URL_MARKS}%" if "://" in file else _URL_MARKS.replace("#", "").replace("?", "")
    return quote(file.replace("\\", "/"), safe=marks, errors="replace")


_COLOURS: Final = {Level.ERROR: "31", Level.WARNING: "33", Level.NOTE: "36"}
_WIDTH: Final = 9
"""Width of the column of levels for findings with two lines."""


def _text_lines(report: FindingReport, is_coloured: bool) -> Iterator[str]:
    for case in report.cases:
        alike: Counter[tuple[Level, str]] = Counter()
        for finding in case.findings:
            kind = finding.level, finding.rule
            alike[kind] += 1
            if report.most_alike is None or alike[kind] <= report.most_alike:
                yield from finding_lines(report, finding, is_coloured=is_coloured)
        for (level, rule), count in alike.items():
            if report.most_alike is not None and count > report.most_alike:
                yield printable(f"{case.name}: {level}: and {count - report.most_alike} more of {rule}")
    yield from map(printable, filter(None, (*report.notes, report.summary)))


def finding_lines(
    report: FindingReport, finding: ReportFinding, *, is_coloured: bool = False
) -> Iterator[str]:
    """One line if there is a place; else two: level and subject, then rule and message."""
    if report.is_placed:
        parts = (str(finding.where), _word(finding, 0, is_coloured), finding.subject, finding.said)
        rule = f" [{finding.rule}]" if report.shows_rules else ""
        place, word, *said = filter(None, parts)
        yield f"{printable(place)}: {word}: {printable(': '.join(said) + rule)}"
        return
    more = f" (and {len(finding.others)} more)" if finding.others else ""
    yield f"{_word(finding, _WIDTH, is_coloured)} {printable(finding.subject)}{more}"
    yield f"{'':{_WIDTH + 1}}{finding.rule}: {printable(finding.said)}"


def _word(finding: ReportFinding, width: int, is_coloured: bool) -> str:
    word = finding.level_word.ljust(width)
    return f"\x1b[{_COLOURS[finding.level]}m{word}\x1b[0m" if is_coloured else word
