"""The report as workflow commands of GitHub Actions, which shows ten of a level and step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from specmux_schemas.differences.impacts import ChangeSeverity
from specmux_schemas.differences.reports.report import Report, concerned, summary_line
from specmux_schemas.differences.reports.text_report import printable

MOST_SHOWN: Final = 10

_COMMANDS: Final = {
    ChangeSeverity.BREAKING: "error",
    ChangeSeverity.WARNING: "warning",
    ChangeSeverity.NOTICE: "notice",
}


def render_github(report: Report) -> str:
    return "".join(f"{line}\n" for line in _lines(report))


def _lines(report: Report) -> Iterator[str]:
    left_out = 0
    for severity, command in _COMMANDS.items():
        changes = [change for change in report.changes if change.severity is severity]
        for change in changes[:MOST_SHOWN]:
            more = len(change.places) - 1
            where = str(change.location) + (f" (and {more} more)" if more else "")
            who = concerned(change)
            text = f"{where}: {change.message}" + (f" ({who})" if who else "")
            yield f"::{command} title={_property(change.id)}::{_data(text)}"
        left_out += len(changes[MOST_SHOWN:])
    for note in report.notes:
        yield _data(note)
    yield summary_line(report) + (f"; {left_out} changes are not shown as annotations" if left_out else "")


def _data(text: str) -> str:
    """As the runner's toolkit escapes what stands behind the command."""
    return printable(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
