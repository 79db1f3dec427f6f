"""The forms of a report by name."""

from __future__ import annotations

from typing import Final

from specmux_schemas.differences.impacts import ChangeSeverity
from specmux_schemas.differences.reports.github_report import render_github
from specmux_schemas.differences.reports.json_report import render_json
from specmux_schemas.differences.reports.junit_report import render_junit
from specmux_schemas.differences.reports.markdown_report import render_markdown
from specmux_schemas.differences.reports.report import Report
from specmux_schemas.differences.reports.sarif_report import render_sarif
from specmux_schemas.differences.reports.text_report import render_text

FORMATS: Final = ("text", "json", "markdown", "junit", "sarif", "github")


def render(
    report: Report,
    form: str,
    *,
    fail_on: ChangeSeverity | None = ChangeSeverity.BREAKING,
    coloured: bool = False,
) -> str:
    """``fail_on`` is what the junit form calls a failure; ``coloured`` concerns the text.

    Raises ValueError for what is none of FORMATS.
    """
    match form:
        case "text":
            return render_text(report, coloured=coloured)
        case "json":
            return render_json(report)
        case "markdown":
            return render_markdown(report)
        case "junit":
            return render_junit(report, fail_on=fail_on)
        case "sarif":
            return render_sarif(report)
        case "github":
            return render_github(report)
    raise ValueError(f"{form!r} is none of {', '.join(FORMATS)}")
