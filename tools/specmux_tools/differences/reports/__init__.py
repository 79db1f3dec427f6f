"""Reports of a comparison in every form, and their members for programs.

Depends on the comparison's result and the policy, not on documents.
"""

from specmux_tools.differences.reports.rendering import finding_report, render
from specmux_tools.differences.reports.report import Report, report_of
from specmux_tools.reports import FORMS

__all__ = ["FORMS", "Report", "finding_report", "render", "report_of"]
