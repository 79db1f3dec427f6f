"""The report for a terminal: one change in two lines, its first place and how many more there are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from specmux_schemas.differences.changes import Change
from specmux_schemas.differences.impacts import ChangeSeverity
from specmux_schemas.differences.reports.report import Report, concerned, summary_line

_COLOURS: Final = {ChangeSeverity.BREAKING: "31", ChangeSeverity.WARNING: "33", ChangeSeverity.NOTICE: "36"}
_WIDTH: Final = 9


def render_text(report: Report, *, coloured: bool = False) -> str:
    lines = [line for change in report.changes for line in _lines(change, coloured)]
    return "\n".join([*lines, *map(printable, report.notes), summary_line(report)]) + "\n"


def _lines(change: Change, coloured: bool) -> Iterator[str]:
    word = change.severity.word.ljust(_WIDTH)
    if coloured:
        word = f"\x1b[{_COLOURS[change.severity]}m{word}\x1b[0m"
    more = len(change.places) - 1
    where = printable(str(change.location)) + (f" (and {more} more)" if more else "")
    yield f"{word} {where}"
    who = concerned(change)
    yield " " * (_WIDTH + 1) + f"{change.id}: {printable(change.message)}" + (f" ({who})" if who else "")


def printable(text: str) -> str:
    """Documents come from anybody, and a terminal obeys what is not printable."""
    return "".join(mark if mark.isprintable() else f"\\u{ord(mark):04x}" for mark in text)
