"""Results of checks as a report: each document is a test case, failed by an error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from specmux_converters.counted_nouns import counted
from specmux_converters.errors import cut
from specmux_tools.document_checks.findings import RULES, DocumentFinding, DocumentReport
from specmux_tools.reports import Case, FindingReport, Level, ReportFinding, Suite, Where

NAMED_MAX: Final = 10
"""Findings per document, level and rule that the text lists."""


def report_of(checked: Sequence[DocumentReport]) -> FindingReport:
    cases = (
        Case(cut(each.name), "specmux.check", tuple(_finding(each.name, found) for found in each.findings))
        for each in checked
    )
    return FindingReport(
        command="specmux check",
        title="Checked documents",
        suites=(Suite("documents", tuple(cases)),),
        document=[
            {"document": each.name, "findings": [finding._asdict() for finding in each.findings]}
            for each in checked
        ],
        summary=summary(checked),
        rules=RULES,
        shows_rules=True,
        most_alike=NAMED_MAX,
    )


def summary(checked: Sequence[DocumentReport]) -> str:
    """``36 documents: 146 errors, 2 warnings, 0 notes``."""
    counts = [counted(sum(each.count(level) for each in checked), level) for level in Level]
    return f"{counted(len(checked), 'document')}: {', '.join(counts)}"


def _finding(name: str, found: DocumentFinding) -> ReportFinding:
    return ReportFinding(
        rule=found.rule,
        level=found.level,
        message=found.message,
        where=Where(name, found.line, found.column, found.pointer),
        subject=cut(found.pointer),
        fails=found.level is Level.ERROR,
    )
