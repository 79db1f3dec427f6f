"""A report for terminals and logs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from specmux_converters.printing import printable
from specmux_tools.reports.finding import Case, FindingReport, Level, ReportFinding

_COLOURS: Final = {Level.ERROR: "31", Level.WARNING: "33", Level.NOTE: "36"}
_WIDTH: Final = 9
"""Of the column of levels for findings with two lines."""


def render_text(report: FindingReport, *, is_coloured: bool) -> str:
    lines = [line for case in report.cases for line in _case_lines(report, case, is_coloured)]
    lines += map(printable, (*report.notes, *filter(None, (report.summary,))))
    return "".join(f"{line}\n" for line in lines)


def _case_lines(report: FindingReport, case: Case, is_coloured: bool) -> Iterator[str]:
    alike: Counter[tuple[Level, str]] = Counter()
    for finding in case.findings:
        kind = finding.level, finding.rule
        alike[kind] += 1
        if report.most_alike is None or alike[kind] <= report.most_alike:
            yield from finding_lines(report, finding, is_coloured=is_coloured)
    for (level, rule), count in alike.items():
        if report.most_alike is not None and count > report.most_alike:
            yield printable(f"{case.name}: {level}: and {count - report.most_alike} more of {rule}")


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
