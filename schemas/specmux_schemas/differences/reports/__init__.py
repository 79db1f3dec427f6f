"""A comparison written for its reader: a person, a script, or a system that runs tests and reviews.

It knows what the comparison found, and the policy; no document.
"""

from specmux_schemas.differences.reports.formats import FORMATS, render
from specmux_schemas.differences.reports.report import Report, report_of

__all__ = ["FORMATS", "Report", "render", "report_of"]
