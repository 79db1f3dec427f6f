"""A report in the Test Anything Protocol, version 13: findings are in a block below their case."""

from __future__ import annotations

from collections.abc import Iterator

import orjson

from specmux_converters.printing import printable
from specmux_tools.reports.finding import Case, FindingReport


def render_tap(report: FindingReport) -> str:
    return "".join(f"{line}\n" for line in _lines(report))


def _lines(report: FindingReport) -> Iterator[str]:
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
