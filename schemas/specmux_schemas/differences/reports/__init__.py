"""What a comparison says, in every form of report; and its members, which programs read.

It knows what the comparison found, and the policy; no document.
"""

from specmux_schemas.differences.reports.rendering import render
from specmux_schemas.differences.reports.report import Report, report_of
from specmux_schemas.reports import FORMS

__all__ = ["FORMS", "Report", "render", "report_of"]
