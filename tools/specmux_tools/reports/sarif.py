"""A report as SARIF 2.1.0 (OASIS), which code scanning reads: one result per finding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from specmux_converters.printing import json_text, printable
from specmux_tools.reports.finding import FindingReport, ReportFinding

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
