"""Findings of any command, written for their reader: a person, a script, a system of tests or reviews.

A command makes a FindingReport of what it found; every form is written here, alike for all commands. It knows
nothing of what was looked at.
"""

from specmux_schemas.reports.finding import Case, FindingReport, Level, ReportFinding, Suite, Where
from specmux_schemas.reports.forms import FORMS, render

__all__ = ["FORMS", "Case", "FindingReport", "Level", "ReportFinding", "Suite", "Where", "render"]
