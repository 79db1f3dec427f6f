"""The report for programs. Its members are stable; ``format`` increases if they change."""

from __future__ import annotations

from typing import Any, Final

import orjson

from specmux_converters.group_versions import GroupVersion
from specmux_tools.differences.changes import Change, Location
from specmux_tools.differences.impacts import SEVERITIES, Impact, Impacts
from specmux_tools.differences.reports.report import Report
from specmux_tools.reports import Where

FORMAT: Final = "specmux.changes/v1"


def render_json(report: Report) -> str:
    return orjson.dumps(report_object(report), option=orjson.OPT_INDENT_2).decode() + "\n"


def report_object(report: Report) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "old": report.old,
        "new": report.new,
        "summary": summary_object(report),
        "changes": [change_object(change) for change in report.changes],
    }


def summary_object(report: Report) -> dict[str, Any]:
    counts = report.counts()
    return {
        **{severity.word: changes for severity, (changes, _) in counts.items()},
        "places": {severity.word: places for severity, (_, places) in counts.items()},
        "documentation": report.documentation,
        "allowed": report.allowed,
        "notes": list(report.notes),
    }


def change_object(change: Change) -> dict[str, Any]:
    return {
        "id": change.id,
        "severity": change.severity.word,
        "impact": {
            "write": change.impacts.write.word,
            "read": change.impacts.read.word,
            "stored": change.impacts.stored.word,
        },
        **_location(change.location),
        "what": change.what,
        "old": change.old,
        "new": change.new,
        "message": change.message,
        "fingerprint": change.fingerprint,
        "places": [_location(place) for place in change.places],
        **({} if change.where is None else {"where": _where(change.where)}),
    }


def read_change(value: dict[str, Any]) -> Change:
    """Reads a change written by ``change_object``."""
    impacts = (Impact[value["impact"][side].upper()] for side in ("write", "read", "stored"))
    places = tuple(
        Location(GroupVersion(place["groupVersion"]), place["kind"], place["path"])
        for place in value["places"]
    )
    return Change(
        value["id"],
        SEVERITIES[value["severity"]],
        Impacts(*impacts),
        value["what"],
        value["old"],
        value["new"],
        places,
    )


def _where(where: Where) -> dict[str, Any]:
    return {"file": where.file, "line": where.line, "column": where.column, "pointer": where.pointer}


def _location(place: Location) -> dict[str, str]:
    return {"groupVersion": place.group_version, "kind": place.kind, "path": place.path}
