"""The report as test results, for systems that show those: a change is a test that may fail."""

from __future__ import annotations

from specmux_schemas.differences.changes import Change
from specmux_schemas.differences.impacts import ChangeSeverity
from specmux_schemas.differences.reports.report import Report, concerned, summary_line
from specmux_schemas.differences.reports.text_report import printable


def render_junit(report: Report, *, fail_on: ChangeSeverity | None) -> str:
    """``fail_on``: the least severity that fails; None where none does."""
    failing = [change for change in report.changes if fail_on is not None and change.severity >= fail_on]
    cases = [_case(change, is_failure=change in failing) for change in report.changes]
    if not cases:
        cases = ['    <testcase classname="specmux.diff" name="no changes"/>']
    counts = f'tests="{len(cases)}" failures="{len(failing)}"'
    return "\n".join(
        [
            '<?xml version="1.0" encoding="UTF-8"?>',
            f'<testsuites name="specmux diff" {counts}>',
            f"  <testsuite name={_attribute(f'{report.old} to {report.new}')} {counts}>",
            *cases,
            f"    <system-out>{_text(printable(summary_line(report)))}</system-out>",
            "  </testsuite>",
            "</testsuites>",
            "",
        ]
    )


def _case(change: Change, *, is_failure: bool) -> str:
    name = _attribute(f"{change.id} {change.location}")
    group = change.location.group_version or "specmux"
    head = f"    <testcase classname={_attribute(group)} name={name}"
    said = f"{change.severity.word}: {change.message}"
    places = "\n".join(printable(str(place)) for place in change.places)
    text = _text("\n".join(filter(None, (printable(said), concerned(change), places))))
    if is_failure:
        about = f"type={_attribute(change.id)} message={_attribute(said)}"
        return f"{head}><failure {about}>{text}</failure></testcase>"
    return f"{head}><system-out>{text}</system-out></testcase>"


def _attribute(text: str) -> str:
    from xml.sax.saxutils import quoteattr  # brings urllib and http: only where XML is written

    return quoteattr(printable(text))


def _text(text: str) -> str:
    from xml.sax.saxutils import escape

    return escape(text)
