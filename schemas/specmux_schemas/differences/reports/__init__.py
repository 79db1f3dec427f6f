"""Reports of a comparison in every form, and their members for programs.

Depends on the comparison's result and the policy, not on documents.
"""

from specmux_schemas.differences.reports.rendering import render
from specmux_schemas.differences.reports.report import Report, report_of
from specmux_schemas.reports import FORMS

__all__ = ["FORMS", "Report", "render", "report_of"]
