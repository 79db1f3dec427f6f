"""The report for a review or a release note."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from specmux_schemas.differences.changes import Change
from specmux_schemas.differences.impacts import ChangeSeverity
from specmux_schemas.differences.reports.report import Report, concerned, summary_line
from specmux_schemas.differences.reports.text_report import printable

_TITLES: Final = {
    ChangeSeverity.BREAKING: "Breaking",
    ChangeSeverity.WARNING: "Warnings",
    ChangeSeverity.NOTICE: "Notices",
}
_MOST_PLACES: Final = 20
"""Of one change; the JSON report has them all."""
_MARKS: Final = re.compile(r"([\\`*_{}\[\]<>#|~!])")


def render_markdown(report: Report) -> str:
    lines = [f"# {_escaped(report.old)} to {_escaped(report.new)}", "", f"{summary_line(report)}.", ""]
    lines += [f"> {_escaped(note)}" for note in report.notes]
    for severity, title in _TITLES.items():
        changes = [change for change in report.changes if change.severity is severity]
        if changes:
            lines += [f"## {title}", "", *(line for change in changes for line in _lines(change)), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _lines(change: Change) -> Iterator[str]:
    who = concerned(change)
    told = f"({change.id}; {who})" if who else f"({change.id})"
    yield f"* {_code(str(change.location))}: {_escaped(change.message)} {told}"
    others = change.places[1:]
    for place in others[:_MOST_PLACES]:
        yield f"  * {_code(str(place))}"
    if len(others) > _MOST_PLACES:
        yield f"  * and {len(others) - _MOST_PLACES} more"


def _code(text: str) -> str:
    """A code span; its fence is longer than any run of backticks in it (CommonMark 6.1)."""
    shown = printable(text)
    runs = [len(run) for run in re.findall(r"`+", shown)]
    fence = "`" * (max(runs, default=0) + 1)
    return f"{fence} {shown} {fence}" if runs else f"`{shown}`"


def _escaped(text: str) -> str:
    return _MARKS.sub(r"\\\1", printable(text))
