"""Findings of any command, formatted for their reader: a person, a script, a system for tests or reviews.

A command makes a FindingReport; every form is written here, alike for all commands. Independent of what was
examined. Names are imported on demand: commands that print a line need no form.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from specmux_converters.lazy import lazy_names

if TYPE_CHECKING:  # at run time a name is imported when it is used
    from specmux_tools.reports.finding import Case, FindingReport, Level, ReportFinding, Suite, Where
    from specmux_tools.reports.forms import FORMS, render

__all__ = ["FORMS", "Case", "FindingReport", "Level", "ReportFinding", "Suite", "Where", "render"]

_MODULES = {"finding": "Case FindingReport Level ReportFinding Suite Where", "forms": "FORMS render"}

__getattr__, __dir__ = lazy_names(__name__, _MODULES, __all__)
