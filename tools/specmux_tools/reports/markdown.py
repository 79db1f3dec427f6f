"""A report for a review or a release note."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from specmux_converters.lazy.patterns import pattern
from specmux_converters.printing import printable
from specmux_tools.reports.finding import FindingReport, Level, ReportFinding

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
            lines += [line for finding in findings for line in _lines(report, finding)]
            lines.append("")
    return "\n".join(lines).rstrip("\n") + "\n"


def _heading(finding: ReportFinding) -> str:
    word = finding.level_word.capitalize()
    return word if word.endswith("ing") and finding.level is Level.ERROR else f"{word}s"


def _lines(report: FindingReport, finding: ReportFinding) -> Iterator[str]:
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
