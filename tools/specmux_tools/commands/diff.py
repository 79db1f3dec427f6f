"""``specmux diff``: compare two sets of documents; report format and exit code."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from specmux_aggregator.command_line.lazy_commands import examples
from specmux_aggregator.command_line.output import WrittenPath, format_option
from specmux_aggregator.console import progress
from specmux_aggregator.errors import InvalidConfig
from specmux_aggregator.exits import FOUND, InputPath, fail_on_option, report_errors
from specmux_converters.errors import ConverterError
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.command_line.output_files import write_file
from specmux_tools.command_line.report_output import write_report
from specmux_tools.differences.policy import NO_POLICY, Policy, baseline, read_policy
from specmux_tools.reports import FORMS
from specmux_tools.sources import SourceOptions, group_versions_option, side_options
from specmux_tools.sources.input import Input, refusals
from specmux_tools.sources.options import CONTEXT, bundle_options, is_given
from specmux_tools.sources.source import FileRefused

if TYPE_CHECKING:  # the help is shown without reading a document
    from specmux_tools.differences.comparison import Comparison
    from specmux_tools.inputs.diff_sides import Side


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffOptions:
    """The parts of the sides that are compared, and how changes are judged and printed."""

    output: str
    fail_on: str
    policy: Path | None
    baseline_file: Path | None
    basis: str | None
    objects: str | None
    allow_unread: bool
    group_versions: tuple[str, ...]
    state: Path | None


_PLACED: Final = ("json", "sarif", "github")
"""Forms that show places in files."""


@click.command(
    epilog=examples(
        ("two releases", "specmux diff openapi-1.34/ openapi-1.35/"),
        ("a pull request's definitions", "specmux diff git:origin/main:crds/ crds/ -o github"),
        ("a cluster before an upgrade", "specmux diff context:production context:staging"),
        ("one group-version of a server", "specmux diff old.json http://127.0.0.1:8080 -g apis/apps/v1"),
    )
)
@click.argument("old")
@click.argument("new")
@fail_on_option("breaking", "warning", "notice", of="changes of this severity")
@click.option(
    "--policy", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False),
    help="Severities and allowed changes, as YAML or JSON.",
)  # fmt: skip
@click.option(
    "--write-baseline", "baseline_file", metavar="FILE",
    type=WrittenPath("a policy", path_type=Path, dir_okay=False),
    help="Write a policy that allows all that --fail-on would fail for, and exit with 0.",
)  # fmt: skip
@click.option(
    "--basis",
    type=click.Choice(("enforced", "described")),
    help="Take schemas as enforced by an apiserver, or as descriptions only.  [default: as documents say]",
)
@click.option(
    "--objects",
    metavar="PATH|context:NAME",
    help="Validate existing objects too: manifests of a file or folder, or those of a cluster.",
)
@click.option(
    "--allow-unread",
    is_flag=True,
    help="Compare the rest where a file or document cannot be read, and name it in the report.",
)
@group_versions_option("Compare this group-version")
@click.option(
    "--state", "state", metavar="DIR", type=InputPath(path_type=Path, exists=True, file_okay=False),
    help="State directory of a service: OLD and NEW can be hashes of its documents.",
)  # fmt: skip
@format_option(*FORMS)
@bundle_options("options", DiffOptions)
@side_options
def diff(old: str, new: str, options: DiffOptions, source: SourceOptions) -> None:
    """Compare documents: what changed, and who breaks.

    OLD and NEW are files, folders, - for standard input, URLs of servers or documents, git:REV:PATH,
    oci:PATH, or context:NAME of a kubeconfig: OpenAPI v3, Swagger 2.0 or CustomResourceDefinitions, gzipped
    or not. With --group-version they may be hashes of documents that a service kept, with --state, or both
    with --server.

    Exit codes: 0 nothing as severe as --fail-on, 1 found, 2 usage, 3 unreadable, 4 no answer.
    """
    from specmux_tools.differences import ChangeSeverity
    from specmux_tools.differences.reports import finding_report, report_of

    named = [word for word in (old, new, options.objects or "") if word.startswith(CONTEXT)]
    if source.context or (source.kubeconfig and not named):
        raise click.UsageError(
            "a cluster is compared as OLD or NEW, or validated as --objects: write context:NAME"
        )
    if [old, new, str(options.policy), options.objects].count("-") > 1:
        raise click.UsageError("standard input (-) can be read once")
    with report_errors(), progress("comparing"):
        rules = _policy(options.policy)
        compared = _compare_sides(old, new, options, source)
        today = dt.datetime.now(tz=dt.UTC).date().isoformat()
        report = report_of(compared.found, old=old, new=new, policy=rules, today=today, notes=compared.notes)
        if options.output in _PLACED and compared.sides:
            from specmux_tools.inputs.diff_places import place_changes

            report = place_changes(report, *(side.sources for side in compared.sides))
        level = None if options.fail_on == "never" else ChangeSeverity[options.fail_on.upper()]
        write_report(finding_report(report, level), options.output)
        failing = [change for change in report.changes if level is not None and change.severity >= level]
        if options.baseline_file is not None:
            from specmux_converters.yaml import to_yaml

            write_file(options.baseline_file, to_yaml(baseline(failing, today=today)))
            return
    if failing or (compared.refused and level is not None):
        raise click.exceptions.Exit(FOUND)


@dataclass(frozen=True, slots=True)
class _Compared:
    """``sides``: () where a service compared them. ``refused``: objects that NEW no longer takes."""

    found: Comparison
    sides: tuple[Side, ...] = ()
    notes: tuple[str, ...] = ()
    refused: int = 0


def _compare_sides(old: str, new: str, options: DiffOptions, source: SourceOptions) -> _Compared:
    """Raises click.UsageError, FileRefused, SourceError."""
    from specmux_tools.differences import Basis, compare
    from specmux_tools.inputs.diff_sides import is_hash, refuse_cut_hash, side_of

    names, objects = options.group_versions, options.objects
    if source.server and options.state is None and len(names) == 1 and is_hash(old) and is_hash(new):
        from specmux_tools.sources.remote.kept_documents import kept_comparison

        if objects is not None:
            raise click.UsageError("--objects needs documents to validate against, not hashes of a server")
        return _Compared(kept_comparison(old, new, names[0], source))
    if is_given("server"):
        for word in (old, new):
            refuse_cut_hash(word)
        raise click.UsageError(
            "--server is for two hashes and one --group-version; give its URL as OLD or NEW"
        )
    first, second = sides = tuple(
        side_of(word, source, group_versions=names, state=options.state, allows_unread=options.allow_unread)
        for word in (old, new)
    )
    before, after = first.served, second.served
    for name in names:  # nothing would be compared
        if name not in before.group_versions and name not in after.group_versions:
            raise FileRefused(
                f"{old} and {new}", f"neither has {name}; without --group-version all are compared"
            )
    notes, refused = (*first.notes, *second.notes), 0
    if not any(each.group_versions or each.stored_versions for each in (before, after)):
        raise FileRefused(f"{old} and {new}", "; ".join(notes) or "neither serves anything")
    if objects is not None:
        from specmux_tools.inputs.judged_objects import judge_objects

        verdicts, refused = judge_objects(objects, source, (old, first), (new, second))
        notes = (*notes, *verdicts)
    with refusals(new):
        found = compare(before, after, basis=Basis(options.basis) if options.basis else None)
    return _Compared(found, sides, notes, refused)


def _policy(file: Path | None) -> Policy:
    """Raises InvalidConfig, Refused."""
    if file is None:
        return NO_POLICY
    from specmux_converters.yaml import parse_yaml_stream

    data = Input.at(file).read()
    try:
        documents = parse_yaml_stream(data)
        return read_policy(documents[0] if documents else {})
    except ConverterError as error:
        raise InvalidConfig(str(error), where=str(file)) from error
