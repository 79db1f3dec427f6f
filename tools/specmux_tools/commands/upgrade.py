"""``specmux upgrade``: whether objects are ready for what will serve them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import click

from specmux_aggregator.command_line.common_options import release_option
from specmux_aggregator.command_line.lazy_commands import examples
from specmux_aggregator.command_line.output import format_option
from specmux_aggregator.console import progress, warn
from specmux_aggregator.exits import FOUND, NOT_CHECKED, report_errors
from specmux_converters.counted_nouns import counted
from specmux_tools.command_line.report_output import write_report
from specmux_tools.command_line.validation_reports import case_of
from specmux_tools.reports import FORMS, Case, FindingReport, Suite
from specmux_tools.sources import SourceOptions, source_options
from specmux_tools.sources.options import source_word

if TYPE_CHECKING:  # the help is shown without reading a document
    from specmux_tools.inputs.upgraded_objects import UpgradedObject


@click.command(
    epilog=examples(
        ("this cluster's manifests, before 1.37", "specmux upgrade --to 1.37 manifests/"),
        ("a release of Helm", "helm get manifest web | specmux upgrade --to 1.37 -"),
        ("without a cluster", "specmux upgrade --from 1.34 --to 1.37 manifests/"),
        ("a cluster's objects", "specmux upgrade --context production --live --to context:staging"),
    )
)
@click.argument("paths", metavar="[PATH…|-]", nargs=-1)
@click.option(
    "--to", "target", metavar="DOCS", default="",
    help="After the upgrade: a release of Kubernetes (1.37), or documents: files, a folder, a URL, "
    "git:REV:PATH, oci:PATH or context:NAME.  [required]",
)  # fmt: skip
@click.option(
    "--from", "origin", metavar="DOCS", default="",
    help="Before it, in the same forms.  [default: the server or files of the options below; without a "
    "cluster the release before --to]",
)  # fmt: skip
@click.option(
    "--live",
    is_flag=True,
    help="Validate stored objects too, of the cluster of --from or of the options below.",
)
@click.option(
    "--allow-unchecked", is_flag=True, help="Accept objects with a rule or field that could not be checked.",
)  # fmt: skip
@click.option(
    "--summary/--no-summary", "has_summary", default=True, show_default=True, help="Print the counts."
)
@release_option(
    "After the upgrade validate by the rules of this Kubernetes release.",
    default="that of --to, else the newest",
)
@format_option(*FORMS)
@source_options
def upgrade(
    paths: Sequence[str],
    target: str,
    origin: str,
    live: bool,
    allow_unchecked: bool,
    has_summary: bool,
    release: str | None,
    output: str,
    source: SourceOptions,
) -> None:
    """List the objects that must change before an upgrade.

    Each object is validated under the documents that serve it now and under those of --to. Reported
    are removed kinds, with the group-version that serves them now; removed or refused fields; changed
    defaults and values; Roles that name removed resources; and definitions that the new ones cannot replace.
    PATH is a file, a folder, or - for standard input.

    Exit codes: 0 all ready, 1 some not ready, 2 usage, 3 unreadable, 4 no answer, 5 some not checked
    (see --allow-unchecked).
    """
    from specmux_converters.releases import RELEASES
    from specmux_tools.inputs.upgraded_objects import judge_upgrade
    from specmux_tools.sources.releases import predecessor
    from specmux_tools.upgrades import UpgradeOutcome

    if not target:
        oldest, newest = RELEASES[0], RELEASES[-1]
        raise click.UsageError(
            "--to is missing: objects are validated under what will serve them after the upgrade. Name a "
            f"release of Kubernetes, {oldest} to {newest}, such as --to {newest}, or documents: "
            "a file, a folder, a URL, git:REV:PATH, oci:PATH or context:NAME"
        )
    if not paths and not live:
        raise click.UsageError("no objects: name manifests as PATH, or take those of a cluster with --live")
    with report_errors(), progress("validating"):
        target, origin = source_word(target), source_word(origin)
        if not origin and not live:
            origin = predecessor(target, source)
        judged = judge_upgrade(paths, origin=origin, target=target, source=source, release=release, live=live)
        if not judged:
            warn("no object was found: nothing was validated")
        report = _report(judged, origin, target)
        if not has_summary:
            report = replace(report, summary="")
        write_report(report, output)
    outcomes = {each.verdict.outcome for each in judged}
    if UpgradeOutcome.NOT_READY in outcomes:
        raise click.exceptions.Exit(FOUND)
    if UpgradeOutcome.NOT_CHECKED in outcomes and not allow_unchecked:
        raise click.exceptions.Exit(NOT_CHECKED)


def _report(judged: Sequence[UpgradedObject], origin: str, target: str) -> FindingReport:
    from specmux_tools.upgrades import UpgradeOutcome

    found = Counter(each.verdict.outcome for each in judged)
    counts = {outcome: found[outcome] for outcome in UpgradeOutcome}
    document: dict[str, Any] = {
        "from": origin,
        "to": target,
        "objects": [each.as_document() for each in judged],
        "summary": {outcome.value: count for outcome, count in counts.items()},
    }
    said = ", ".join(f"{count} {outcome.value}" for outcome, count in counts.items() if count)
    return FindingReport(
        command="specmux upgrade",
        title="Ready to upgrade?",
        suites=tuple(
            Suite(file, tuple(map(_case, group))) for file, group in groupby(judged, lambda each: each.file)
        ),
        document=document,
        summary=f"Summary: {counted(len(judged), 'object')}: {said or 'none'}",
    )


def _case(each: UpgradedObject) -> Case:
    return case_of(each.verdict.report, each.file, each.line, fails=lambda _: each.is_failing)
