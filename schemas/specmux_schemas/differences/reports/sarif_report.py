"""The report as SARIF 2.1.0 (OASIS), which code scanning reads: one result for each change."""

from __future__ import annotations

from typing import Any, Final

import orjson

from specmux_schemas.differences.changes import Change
from specmux_schemas.differences.impacts import ChangeSeverity
from specmux_schemas.differences.reports.report import Report, concerned
from specmux_schemas.differences.rules import RULES

_LEVELS: Final = {
    ChangeSeverity.BREAKING: "error",
    ChangeSeverity.WARNING: "warning",
    ChangeSeverity.NOTICE: "note",
}
_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def render_sarif(report: Report) -> str:
    used = sorted({change.id for change in report.changes})
    rules = [
        {"id": name, "shortDescription": {"text": RULES[name].says.replace("{what}", "something")}}
        for name in used
    ]
    run = {
        "tool": {"driver": {"name": "specmux", "rules": rules}},
        "results": [_result(change, used.index(change.id), report.new) for change in report.changes],
        "columnKind": "unicodeCodePoints",
    }
    document = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n"


def _result(change: Change, rule_index: int, uri: str) -> dict[str, Any]:
    who = concerned(change)
    text = f"{change.location}: {change.message}" + (f" ({who})" if who else "")
    return {
        "ruleId": change.id,
        "ruleIndex": rule_index,
        "level": _LEVELS[change.severity],
        "message": {"text": text},
        "locations": [
            {
                # A place in a file is what code scanning asks for; a change has one in a schema.
                "physicalLocation": {"artifactLocation": {"uri": uri}, "region": {"startLine": 1}},
                "logicalLocations": [
                    {"fullyQualifiedName": str(place), "kind": "member"} for place in change.places
                ],
            }
        ],
        "partialFingerprints": {"specmuxChange/v1": change.fingerprint},
    }
