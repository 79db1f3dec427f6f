"""How ``specmux validate`` tells what it found: for people, and as JSON, JUnit, TAP, SARIF and GitHub's
workflow commands. Each function returns the whole output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, Final

import orjson

from specmux_aggregator.console import Colour, coloured
from specmux_aggregator.sources.validated_objects import ObjectVerdict, ValidatedObject, counts
from specmux_aggregator.version import VERSION
from specmux_schemas.differences.reports.text_report import printable
from specmux_schemas.validation import Severity, Violation

_COLOURS: Final[Mapping[Severity, Colour]] = {
    Severity.ERROR: "red",
    Severity.WARNING: "yellow",
    Severity.NOTE: "green",
}
_LEVELS: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}
_GITHUB: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}
_SARIF_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"


def text(checked: Sequence[ValidatedObject], *, has_summary: bool) -> str:
    """A line for each violation, and for each object that was skipped; nothing for what is valid."""
    lines = [line for each in checked for line in _lines(each)]
    if has_summary:
        lines.append(summary_line(checked))
    return "".join(f"{line}\n" for line in lines)


def summary_line(checked: Sequence[ValidatedObject]) -> str:
    found = counts(checked)
    files = len({each.file for each in checked})
    told = [f"{found[ObjectVerdict.VALID]} valid", f"{found[ObjectVerdict.INVALID]} invalid"]
    if found[ObjectVerdict.SKIPPED]:
        told.append(f"{found[ObjectVerdict.SKIPPED]} skipped")
    if found[ObjectVerdict.NO_SCHEMA]:
        told.append(f"{found[ObjectVerdict.NO_SCHEMA]} without a schema")
    return f"Summary: {len(checked)} objects in {files} files: {', '.join(told)}"


def _lines(each: ValidatedObject) -> Iterator[str]:
    for violation in told(each):
        severity = coloured(violation.severity.value, _COLOURS[violation.severity])
        place = ":".join(map(str, (each.file, violation.line or each.line, violation.column or 1)))
        source = f" ({each.source})" if each.source else ""
        said = printable(f"{each.label}: {_message(violation)}{source}")
        yield f"{printable(place)}: {severity}: {said}"


def told(each: ValidatedObject) -> tuple[Violation, ...]:
    """What is said of an object: nothing of one that is skipped."""
    return () if each.outcome in (ObjectVerdict.SKIPPED, ObjectVerdict.NO_SCHEMA) else each.report.violations


def _message(violation: Violation) -> str:
    return violation.message + (f' (did you mean "{violation.hint}"?)' if violation.hint else "")


def json(checked: Sequence[ValidatedObject], *, has_summary: bool) -> str:
    document: dict[str, Any] = {"objects": [each.as_document() for each in checked]}
    if has_summary:
        document["summary"] = {outcome.value: count for outcome, count in counts(checked).items()}
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n"


def junit(checked: Sequence[ValidatedObject], *, has_summary: bool) -> str:
    """A suite for each file, a case for each object. The counts are in the suites, asked for or not."""
    suites = "".join(_suite(file, list(group)) for file, group in groupby(checked, lambda each: each.file))
    found = counts(checked)
    failures = found[ObjectVerdict.INVALID]
    head = f'<testsuites name="specmux validate" tests="{len(checked)}" failures="{failures}">'
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}\n{suites}</testsuites>\n'


def _suite(file: str, group: list[ValidatedObject]) -> str:
    found = counts(group)
    passed_over = found[ObjectVerdict.SKIPPED] + found[ObjectVerdict.NO_SCHEMA]
    head = f'tests="{len(group)}" failures="{found[ObjectVerdict.INVALID]}" skipped="{passed_over}"'
    cases = "".join(map(_case, group))
    return f"  <testsuite name={_attribute(printable(file))} {head}>\n{cases}  </testsuite>\n"


def _case(each: ValidatedObject) -> str:
    kind = each.report.kind
    class_name = f"{kind.kind}@{kind.group or 'core'}/{kind.version}" if kind else "unknown"
    names = f"name={_attribute(printable(each.label))} classname={_attribute(printable(class_name))}"
    head = f"    <testcase {names}"
    match each.outcome:
        case ObjectVerdict.VALID:
            return f"{head}/>\n"
        case ObjectVerdict.INVALID:
            inside = "".join(_failure(each, violation) for violation in told(each))
        case ObjectVerdict.SKIPPED | ObjectVerdict.NO_SCHEMA:
            inside = f"      <skipped message={_attribute(each.outcome.value)}/>\n"
    return f"{head}>\n{inside}    </testcase>\n"


def _failure(each: ValidatedObject, violation: Violation) -> str:
    message = printable(_message(violation))
    if violation.severity is not Severity.ERROR:
        return ""
    place = f"{each.file}:{violation.line or each.line}"
    attributes = f"message={_attribute(message)} type={_attribute(violation.check.value)}"
    return f"      <failure {attributes}>{_escaped(printable(place))}: {_escaped(message)}</failure>\n"


def tap(checked: Sequence[ValidatedObject], *, has_summary: bool) -> str:
    """Test Anything Protocol 13; what is wrong stands in a block below its object."""
    lines = ["TAP version 13", f"1..{len(checked)}"]
    for number, each in enumerate(checked, 1):
        is_ok = each.outcome is not ObjectVerdict.INVALID
        reason = (
            f" # SKIP {each.outcome.value}"
            if each.outcome in (ObjectVerdict.SKIPPED, ObjectVerdict.NO_SCHEMA)
            else ""
        )
        label = printable(f"{each.file}: {each.label}").replace("#", "\\#")
        lines.append(f"{'ok' if is_ok else 'not ok'} {number} - {label}{reason}")
        if not is_ok:
            messages = [f"line {each_.line or each.line}: {_message(each_)}" for each_ in told(each)]
            lines += ["  ---", *(f"  - {orjson.dumps(message).decode()}" for message in messages), "  ..."]
    if has_summary:
        lines.append(f"# {summary_line(checked)}")
    return "".join(f"{line}\n" for line in lines)


def github(checked: Sequence[ValidatedObject], *, has_summary: bool) -> str:
    """Workflow commands: each becomes an annotation of its line."""
    lines = [_annotation(each, violation) for each in checked for violation in told(each)]
    if has_summary:
        lines.append(summary_line(checked))
    return "".join(f"{line}\n" for line in lines)


def _annotation(each: ValidatedObject, violation: Violation) -> str:
    fields = {
        "file": each.file,
        "line": str(violation.line or each.line),
        "col": str(violation.column or 1),
        "title": each.label,
    }
    written = ",".join(f"{name}={_github_text(value, ':,')}" for name, value in fields.items())
    return f"::{_GITHUB[violation.severity]} {written}::{_github_text(_message(violation))}"


def _github_text(value: str, others: str = "") -> str:
    value = printable(value)
    for character in ("%", *others):
        value = value.replace(character, f"%{ord(character):02X}")
    return value


def sarif(checked: Sequence[ValidatedObject], *, has_summary: bool) -> str:
    """SARIF 2.1.0, for code scanning."""
    results = [_result(each, violation) for each in checked for violation in told(each)]
    rules = sorted({result["ruleId"] for result in results})
    driver = {
        "name": "specmux",
        "version": VERSION,
        "rules": [{"id": rule, "shortDescription": {"text": rule}} for rule in rules],
    }
    document = {
        "$schema": _SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [{"tool": {"driver": driver}, "results": results}],
    }
    return orjson.dumps(document, option=orjson.OPT_INDENT_2).decode() + "\n"


def _result(each: ValidatedObject, violation: Violation) -> dict[str, Any]:
    region = {"startLine": violation.line or each.line, "startColumn": violation.column or 1}
    place = {"artifactLocation": {"uri": each.file.replace("\\", "/")}, "region": region}
    return {
        "ruleId": violation.check.value,
        "level": _LEVELS[violation.severity],
        "message": {"text": f"{each.label}: {_message(violation)}"},
        "locations": [{"physicalLocation": place}],
    }


Writer = Callable[..., str]
WRITERS: Final[Mapping[str, Writer]] = {
    "text": text,
    "json": json,
    "junit": junit,
    "tap": tap,
    "sarif": sarif,
    "github": github,
}


def written(output: str, checked: Iterable[ValidatedObject], *, has_summary: bool) -> str:
    return WRITERS[output](list(checked), has_summary=has_summary)


def _attribute(text: str) -> str:
    """Quoted, for XML."""
    from xml.sax.saxutils import quoteattr  # brings urllib and http: only where XML is written

    return quoteattr(text)


def _escaped(text: str) -> str:
    from xml.sax.saxutils import escape

    return escape(text)
