"""``specmux check``: check documents and definitions against their standard; report and exit code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import click

from specmux_aggregator.command_line.common_options import processors, release_option
from specmux_aggregator.command_line.lazy_commands import examples
from specmux_aggregator.command_line.output import format_option
from specmux_aggregator.console import progress, warn
from specmux_aggregator.exits import FOUND, NOT_CHECKED, UNREADABLE, fail_on_option, report_errors
from specmux_converters.counted_nouns import counted
from specmux_converters.errors import cut
from specmux_converters.group_versions import GroupVersion
from specmux_tools.command_line.report_output import write_report
from specmux_tools.document_checks.findings import (
    RULES,
    UNCHECKED,
    UNREAD,
    DocumentReport,
    Subject,
    unread_document,
)
from specmux_tools.reports import FORMS, Case, FindingReport, Level, ReportFinding, Suite, Where
from specmux_tools.sources import SourceOptions, group_versions_option, source_options
from specmux_tools.sources.open_source import SourceWord, inputs_of
from specmux_tools.sources.source import UnreadSource

NAMED_MAX: Final = 10
"""Findings per document, level and rule that the text lists."""


@click.command(
    epilog=examples(
        ("a release's documents", "specmux check openapi-1.35/"),
        ("for code scanning", "specmux check swagger.json -o sarif > results.sarif"),
        ("the current context's cluster", "specmux check"),
        ("one group-version of a server", "specmux check --server http://127.0.0.1:8080 -g apis/apps/v1"),
    )
)
@click.argument(
    "paths",
    nargs=-1,
    metavar="[SOURCE|-]...",
    type=SourceWord(),
)
@fail_on_option("error", "warning", of="findings of this level")
@group_versions_option("Check this group-version of a server")
@click.option(
    "--jobs", metavar="N", type=click.IntRange(min=1), default=processors,
    help="Number of worker processes.  [default: one for each processor]",
)  # fmt: skip
@release_option("Check CustomResourceDefinitions by the rules of this release of Kubernetes.")
@click.option("--allow-unchecked", is_flag=True, help="Report documents that cannot be checked as warnings.")
@click.option("--no-cache", is_flag=True, help="Ignore cached findings.")
@format_option(*FORMS)
@source_options
def check(
    paths: tuple[str, ...],
    output: str,
    fail_on: str,
    group_versions: tuple[str, ...],
    jobs: int,
    release: str | None,
    allow_unchecked: bool,
    no_cache: bool,
    source: SourceOptions,
) -> None:
    """Check OpenAPI documents and CustomResourceDefinitions for errors.

    OpenAPI v3 and Swagger 2.0 are checked with openapi-spec-validator, which fetches nothing; and for
    unresolved references, duplicate operation ids, paths of another group-version, and losses of a
    conversion. CustomResourceDefinitions are built as an apiserver would publish them.

    Findings are cached by the hash of the document, in the disk cache.

    Exit codes: 0 nothing as severe as --fail-on, 1 found, 2 usage, 3 unreadable, 4 no answer,
    5 not checked in full (see --allow-unchecked).
    """
    if group_versions and (paths or source.is_local):
        raise click.UsageError("--group-version is for servers; of files, name those to check")
    source = source.or_release(release)
    with report_errors():
        unread: list[UnreadSource] = []
        with progress("reading"):
            wanted = [*map(GroupVersion, group_versions)]
            files = inputs_of(paths, source, group_versions=wanted, unread=unread)
        subjects = [Subject(each.name, each.read(), each.group_version, release) for each in files]
        with progress(f"checking {counted(len(subjects), 'document')}"):
            checked = _check_subjects(subjects, source, jobs=jobs, is_kept=not no_cache)
        checked += [unread_document(each.where, each.reason) for each in unread]
        if allow_unchecked:
            checked = [each.with_unchecked_allowed() for each in checked]

        report = report_of(checked)
        write_report(report, output)
    failing = {"error": ("error",), "warning": ("error", "warning"), "never": ()}[fail_on]
    if rules := {finding.rule for each in checked for finding in each.findings if finding.level in failing}:
        raise click.exceptions.Exit(
            FOUND if rules - {UNREAD, UNCHECKED} else UNREADABLE if UNREAD in rules else NOT_CHECKED
        )


def _check_subjects(
    subjects: list[Subject], source: SourceOptions, *, jobs: int, is_kept: bool
) -> list[DocumentReport]:
    """In the order of the subjects."""
    from specmux_tools.document_checks.results import Results, check_all  # brings what checks

    with Results.open(source.directory_of_cache if is_kept else None, warn=warn) as results:
        known = {subject: results.get(subject) for subject in subjects}
        found = {subject: checked for subject, checked in known.items() if checked is not None}
        for subject, checked in check_all([each for each in subjects if each not in found], jobs=jobs):
            found[subject] = checked
            results.put(subject, checked)
    return [found[subject] for subject in subjects]


def report_of(checked: Sequence[DocumentReport]) -> FindingReport:
    cases = []
    for each in checked:
        findings = (
            ReportFinding(
                rule=found.rule,
                level=found.level,
                message=found.message,
                where=Where(each.name, found.line, found.column, found.pointer),
                subject=cut(found.pointer),
                fails=found.level is Level.ERROR,
            )
            for found in each.findings
        )
        cases.append(Case(cut(each.name), "specmux.check", tuple(findings)))
    return FindingReport(
        command="specmux check",
        title="Checked documents",
        suites=(Suite("documents", tuple(cases)),),
        document=[
            {"document": each.name, "findings": [finding._asdict() for finding in each.findings]}
            for each in checked
        ],
        summary=summary(checked),
        rules=RULES,
        shows_rules=True,
        most_alike=NAMED_MAX,
    )


def summary(checked: Sequence[DocumentReport]) -> str:
    """``36 documents: 146 errors, 2 warnings, 0 notes``."""
    counts = [counted(sum(each.count(level) for each in checked), level) for level in Level]
    return f"{counted(len(checked), 'document')}: {', '.join(counts)}"
