"""The forms of a report, by name."""

from __future__ import annotations

from typing import Final

from specmux_converters.printing import json_text
from specmux_tools.reports.finding import FindingReport
from specmux_tools.reports.github import render_github
from specmux_tools.reports.junit import render_junit
from specmux_tools.reports.markdown import render_markdown
from specmux_tools.reports.sarif import render_sarif
from specmux_tools.reports.tap import render_tap
from specmux_tools.reports.text import render_text

FORMS: Final = ("text", "json", "markdown", "junit", "tap", "sarif", "github")


def render(report: FindingReport, form: str, *, is_coloured: bool = False, version: str = "0") -> bytes:
    """UTF-8. ``is_coloured`` concerns the text; ``version``: of the program.

    Raises ValueError for a name that is not one of FORMS.
    """
    match form:
        case "text":
            written = render_text(report, is_coloured=is_coloured)
        case "json":
            written = json_text(report.document)
        case "markdown":
            written = render_markdown(report)
        case "junit":
            written = render_junit(report)
        case "tap":
            written = render_tap(report)
        case "sarif":
            written = render_sarif(report, version=version)
        case "github":
            written = render_github(report)
        case _:
            raise ValueError(f"{form!r} is none of {', '.join(FORMS)}")
    return written.encode()
