"""The report of ``specmux validate``: a file is a suite, an object a test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any, Final

import orjson

from specmux_converters.counted_nouns import counted, list_first
from specmux_converters.yaml import to_yaml
from specmux_tools.inputs.validated_objects import ObjectVerdict, ValidatedObject, counts
from specmux_tools.reports import Case, FindingReport, Level, ReportFinding, Suite, Where
from specmux_tools.validation import Check, Severity, ValidationReport, Violation

_IN_CODE: Final = (
    "rules that apiservers have in code are not checked; kubectl apply --dry-run=server has them"
)
_KINDS_SHOWN: Final = 5
_SELDOM: Final = {
    ObjectVerdict.NOT_CHECKED: "not checked in full",
    ObjectVerdict.SKIPPED: "skipped",
    ObjectVerdict.NO_SCHEMA: "without a schema",
    ObjectVerdict.NO_OBJECT: "no object",
}
"""Words of the summary for what is not in every one."""
_UNJUDGED: Final = (ObjectVerdict.SKIPPED, ObjectVerdict.NO_SCHEMA, ObjectVerdict.NO_OBJECT)


def report_of(
    checked: Sequence[ValidatedObject], *, has_summary: bool, has_notes: bool = True
) -> FindingReport:
    """``has_notes``: it says what was not looked at."""
    notes = tuple(_list_unjudged_kinds(checked))
    document: dict[str, Any] = {"objects": [each.as_document() for each in checked]}
    if notes:
        document["notLookedAt"] = list(notes)
    if has_summary:
        document["summary"] = {outcome.value: count for outcome, count in counts(checked).items()}
    suites = (
        Suite(file, tuple(map(_case, group))) for file, group in groupby(checked, lambda each: each.file)
    )
    return FindingReport(
        command="specmux validate",
        title="Validated objects",
        suites=tuple(suites),
        document=document,
        summary=summary_line(checked) if has_summary else "",
        notes=notes if has_notes else (),
    )


def _list_unjudged_kinds(checked: Sequence[ValidatedObject]) -> Iterator[str]:
    """The kinds whose rules are code of an apiserver, with how many objects there are."""
    judged = (each.report for each in checked if each.outcome not in _UNJUDGED and each.report.is_built_in)
    kinds = Counter(report.kind.kind for report in judged if report.kind)
    if kinds:
        listed = ", ".join(counted(count, kind) for kind, count in sorted(kinds.items()))
        yield f"{listed}: {_IN_CODE}"


def summary_line(checked: Sequence[ValidatedObject]) -> str:
    found = counts(checked)
    files = len({each.file for each in checked})
    told = [f"{found[ObjectVerdict.VALID]} valid", f"{found[ObjectVerdict.INVALID]} invalid"]
    told += [f"{found[outcome]} {words}" for outcome, words in _SELDOM.items() if found[outcome]]
    kinds = _kinds("validated", (each for each in checked if each.outcome not in _UNJUDGED))
    kinds += _kinds("skipped", (each for each in checked if each.outcome in _UNJUDGED))
    return f"Summary: {counted(len(checked), 'object')} in {counted(files, 'file')}: {', '.join(told)}{kinds}"


def _kinds(word: str, objects: Iterable[ValidatedObject]) -> str:
    """The most frequent kinds with their counts; "" without any."""
    found = Counter(each.report.kind.kind for each in objects if each.report.kind is not None)
    names = [f"{count} {kind}" for kind, count in sorted(found.items(), key=lambda item: (-item[1], item[0]))]
    return f"; {word}: {list_first(names, _KINDS_SHOWN)}" if names else ""


def _case(each: ValidatedObject) -> Case:
    if each.outcome in _UNJUDGED:
        return Case(each.report.label, each.report.kind_label, skipped=each.outcome.value)
    is_unchecked = each.outcome is ObjectVerdict.NOT_CHECKED
    is_strict = each.outcome is ObjectVerdict.INVALID and each.report.is_valid  # warnings alone make it so

    def fails(violation: Violation) -> bool:
        return (
            violation.severity is Severity.ERROR
            or (is_strict and violation.severity is Severity.WARNING)
            or (is_unchecked and violation.check is Check.NOT_CHECKED)
        )

    return case_of(each.report, each.file, each.line, detail=each.source, fails=fails)


def case_of(
    report: ValidationReport, file: str, line: int, *, fails: Callable[[Violation], bool], detail: str = ""
) -> Case:
    """An object as a test, its violations as findings. ``line``: its first in ``file``."""
    findings = (
        ReportFinding(
            rule=violation.check.value,
            level=Level(violation.severity.value),
            message=violation.message + (f' (did you mean "{violation.hint}"?)' if violation.hint else ""),
            where=Where(file, violation.line or line, violation.column or 1),
            subject=report.label,
            detail=detail,
            word=violation.severity.value,
            title=report.label,
            fails=fails(violation),
        )
        for violation in report.violations
    )
    return Case(report.label, report.kind_label, tuple(findings))


OBJECT_FORMS: Final = ("yaml", "object-json")


def stored_text(checked: Sequence[ValidatedObject], form: str) -> bytes:
    """The valid objects: a stream of YAML documents; as JSON the object, or a List of several."""
    objects = [
        orjson.loads(orjson.dumps(each.report.stored, default=float))
        for each in checked
        if each.outcome is ObjectVerdict.VALID and each.report.stored is not None and not each.report.is_list
    ]
    if form == "yaml":
        return b"---\n".join(map(to_yaml, objects))
    listed = {"apiVersion": "v1", "kind": "List", "items": objects}
    return orjson.dumps(objects[0] if len(objects) == 1 else listed, option=orjson.OPT_INDENT_2) + b"\n"
