"""Write a report to standard output, its paths as the reader of its form needs them.

Text and JSON are read where the command ran, and name files as they were given. Every other form is read by a
service that knows the repository alone: GitHub and code scanning show nothing for ``cm.yaml`` of a job whose
working directory is ``svc``, and two such jobs would mean one file. There paths begin at the root.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from specmux_aggregator.console import is_coloured
from specmux_aggregator.version import VERSION
from specmux_tools.command_line.output_files import write_out
from specmux_tools.reports import FindingReport, Suite, render

_WORKSPACES: Final = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")
"""Variables of GitHub and GitLab: where a job has its checkout, which may lack ``.git``."""
_AS_GIVEN: Final = ("text", "json")


def write_report(report: FindingReport, form: str) -> None:
    """Raises FileRefused."""
    root = None if form in _AS_GIVEN else repository_root(Path.cwd(), os.environ)
    placed = report if root is None else _place_below_root(report, root)
    write_out(render(placed, form, is_coloured=is_coloured(), version=VERSION), is_text=True)


def repository_root(folder: Path, environment: Mapping[str, str]) -> Path | None:
    """The root of the checkout that the folder is in: the nearest above it with ``.git``, within the
    workspace of CI, else that workspace. None outside of both."""
    here = folder.resolve()
    named = [Path(environment[name]).resolve() for name in _WORKSPACES if environment.get(name)]
    workspace = next((each for each in named if here.is_relative_to(each)), None)
    for above in (here, *here.parents):
        if (above / ".git").exists() or above == workspace:
            return above
    return None


def _place_below_root(report: FindingReport, root: Path) -> FindingReport:
    """Names that are no files here, such as those of group-versions, stay."""
    if root == Path.cwd() and not any(Path(finding.where.file).is_absolute() for finding in report.findings):
        return report
    suites = []
    for suite in report.suites:
        cases = []
        for case in suite.cases:
            findings = (
                replace(each, where=replace(each.where, file=_path(each.where.file, root)))
                for each in case.findings
            )
            cases.append(replace(case, findings=tuple(findings)))
        suites.append(Suite(_path(suite.name, root), tuple(cases)))
    return replace(report, suites=tuple(suites))


def _path(name: str, root: Path) -> str:
    try:
        path = Path(name)
        if not name or not path.exists():
            return name
        # The last part may be a link, and is what the repository has.
        full = path.parent.resolve() / path.name if path.name else path.resolve()
        return full.relative_to(root).as_posix()
    except (OSError, ValueError):  # no path, or one outside
        return name
