"""Findings as text, JSON, JUnit's XML and SARIF 2.1.0 (OASIS)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, Final
from xml.sax.saxutils import escape, quoteattr

import orjson

from specmux_aggregator.checking.findings import RULES, Checked, Finding, Level
from specmux_converters.errors import cut

NAMED_MAX: Final = 10
"""Findings of one document, level and rule that the text names."""

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def render(checked: Sequence[Checked], form: str) -> str:
    match form:
        case "json":
            return orjson.dumps(_rows(checked), option=orjson.OPT_INDENT_2).decode() + "\n"
        case "junit":
            return _junit(checked)
        case "sarif":
            return orjson.dumps(_sarif(checked), option=orjson.OPT_INDENT_2).decode() + "\n"
        case _:
            return "".join(f"{line}\n" for line in _lines(checked))


def summary(checked: Sequence[Checked]) -> str:
    """``36 documents: 146 errors, 2 warnings, 0 notes``."""
    counts = [f"{sum(each.count(level) for each in checked)} {level}s" for level in Level]
    noun = "document" if len(checked) == 1 else "documents"
    return f"{len(checked)} {noun}: {', '.join(counts)}"


def _lines(checked: Sequence[Checked]) -> Iterator[str]:
    for each in checked:
        told: Counter[tuple[Level, str]] = Counter()
        for finding in each.findings:
            kind = finding.level, finding.rule
            told[kind] += 1
            if told[kind] <= NAMED_MAX:
                yield f"{_name(each)}: {_said(finding)}"
        for (level, rule), count in told.items():
            if count > NAMED_MAX:
                yield f"{_name(each)}: {level}: and {count - NAMED_MAX} more of {rule}"
    yield summary(checked)


def _said(finding: Finding) -> str:
    place = f"{cut(finding.pointer)}: " if finding.pointer else ""
    return f"{finding.level}: {place}{finding.message} [{finding.rule}]"


def _name(checked: Checked) -> str:
    return cut(checked.name)


def _rows(checked: Sequence[Checked]) -> list[dict[str, Any]]:
    return [
        {"document": each.name, "findings": [finding._asdict() for finding in each.findings]}
        for each in checked
    ]


def _junit(checked: Sequence[Checked]) -> str:
    failures = sum(each.count(Level.ERROR) > 0 for each in checked)
    counts = f'tests="{len(checked)}" failures="{failures}"'
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<testsuites name="specmux check" {counts}>',
            f'  <testsuite name="documents" {counts}>',
            *map(_case, checked),
            "  </testsuite>",
            "</testsuites>",
            "",
        ]
    )


def _case(checked: Checked) -> str:
    head = f'    <testcase classname="specmux.check" name={quoteattr(_name(checked))}'
    said = escape("\n".join(map(_said, checked.findings)))
    errors = checked.count(Level.ERROR)
    if errors:
        return f'{head}><failure message="{errors} errors">{said}</failure></testcase>'
    return f"{head}><system-out>{said}</system-out></testcase>" if said else f"{head}/>"


def _sarif(checked: Sequence[Checked]) -> dict[str, Any]:
    rules = [{"id": name, "shortDescription": {"text": text}} for name, text in RULES.items()]
    results = [_result(each, finding) for each in checked for finding in each.findings]
    run = {"tool": {"driver": {"name": "specmux", "rules": rules}}, "results": results}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(checked: Checked, finding: Finding) -> dict[str, Any]:
    place = {"artifactLocation": {"uri": checked.name}, "region": {"startLine": 1}}
    return {
        "ruleId": finding.rule,
        "ruleIndex": [*RULES].index(finding.rule),
        "level": finding.level,
        "message": {"text": _said(finding)},
        "locations": [
            {
                "physicalLocation": place,
                "logicalLocations": [{"fullyQualifiedName": finding.pointer or "/", "kind": "member"}],
            }
        ],
    }
