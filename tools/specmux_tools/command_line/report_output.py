"""Write a report to standard output, its paths as the reader of its form needs them.

Text and JSON are read where the command ran, and name files as they were given. Every other form is read by a
service that knows the repository alone: GitHub and code scanning show nothing for ``cm.yaml`` of a job whose
working directory is ``svc``, and two such jobs would mean one file. There paths begin at the root.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from specmux_aggregator.console import is_coloured
from specmux_aggregator.version import VERSION
from specmux_converters.counted_nouns import counted, list_first
from specmux_converters.errors import cut
from specmux_converters.losses import Grade, Loss
from specmux_tools.command_line.output_files import write_out
from specmux_tools.reports import FindingReport, Suite, render

_WORKSPACES: Final = ("GITHUB_WORKSPACE", "CI_PROJECT_DIR")
"""Variables of GitHub and GitLab: where a job has its checkout, which may lack ``.git``."""
_AS_GIVEN: Final = ("text", "json")
_KINDS_MAX: Final = 5
_NAMED_MAX: Final = 3
"""Places of one kind of note that are named."""


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


def count_losses(losses: Sequence[Loss]) -> str:
    """``2 losses: 2 × default; 1067 notes: 1067 × operation schemes``, the most frequent kinds first."""
    parts = []
    for grade in (Grade.LOSS, Grade.NOTE):
        if kinds := Counter(cut(loss.construct) for loss in losses if loss.grade is grade):
            shown = [f"{count} × {kind}" for kind, count in kinds.most_common()]
            parts.append(f"{counted(kinds.total(), grade.value)}: {list_first(shown, _KINDS_MAX)}")
    return "; ".join(parts)


def list_losses(losses: Sequence[Loss]) -> Iterator[str]:
    """Lines: one for each loss, then one for all notes that say the same."""
    notes: dict[tuple[str, str], list[str]] = {}
    for loss in losses:
        if loss.grade is Grade.LOSS:
            yield f"{_place(loss)}: {cut(loss.construct)}: {loss.reason}"
        else:
            notes.setdefault((loss.construct, loss.reason), []).append(_place(loss))
    for (construct, reason), places in notes.items():
        named = list_first(places, _NAMED_MAX)
        yield f"note, {len(places)} × {cut(construct)}: {reason} ({named})"


def _place(loss: Loss) -> str:
    return cut(loss.pointer) or "(document)"
