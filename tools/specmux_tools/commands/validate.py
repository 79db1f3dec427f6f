"""``specmux validate``: check manifests as an apiserver would; report format and exit code."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final

import click

from specmux_aggregator.command_line.common_options import processors, release_option
from specmux_aggregator.command_line.lazy_commands import examples
from specmux_aggregator.command_line.output import format_option
from specmux_aggregator.console import progress, warn
from specmux_aggregator.exits import FOUND, NOT_CHECKED, fail_on_option, report_errors
from specmux_aggregator.version import VERSION
from specmux_converters.counted_nouns import counted, list_first
from specmux_converters.document import Document
from specmux_converters.group_versions import GroupVersion
from specmux_converters.json_values import mapping, within
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.order import BUILT_IN_GROUPS
from specmux_converters.recognise import COMPOSITE, OF_COMPOSITES
from specmux_converters.releases import PREVIEW, newer_note
from specmux_converters.resources import GroupVersionKind
from specmux_tools.command_line.operation_options import (
    OperationOptions,
    operation_options,
    unmatched_hints,
)
from specmux_tools.command_line.output_files import write_out
from specmux_tools.command_line.report_output import write_report
from specmux_tools.command_line.validation_reports import OBJECT_FORMS, report_of, stored_text
from specmux_tools.inputs.validated_objects import (
    IgnoredField,
    Manifest,
    ObjectVerdict,
    ValidatedObject,
    VerdictOptions,
    check,
    documents_for,
    manifest_files,
    object_of,
    with_places,
)
from specmux_tools.kinds import DocumentSet
from specmux_tools.reports import FORMS, render
from specmux_tools.sources import SourceOptions, open_documents, report_unread, source_options
from specmux_tools.sources.input import Input
from specmux_tools.sources.kind_lookup import known_kinds
from specmux_tools.sources.options import STDIN, bundle_options
from specmux_tools.validation import Directive, UnionAlgorithm, Validator
from specmux_tools.validation.decoding.body import objects_in
from specmux_tools.validation.decoding.manifests import (
    definitions_in,
    is_local_config,
    preserving_kinds,
)
from specmux_tools.validation.last_applied import LARGE, apply_hint

KINDS_SHOWN: Final = 3
FEW_OBJECTS: Final = 1000
"""Documents for which another process is worth its start."""

_DIRECTIVES: Final = {
    **{each.value.lower(): each for each in Directive},
    "true": Directive.STRICT,
    "false": Directive.IGNORE,
}
"""KEP-2885 lists them all, as kubectl has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidateOptions:
    """Options of the verdicts on objects, and of their output."""

    field_validation: str
    unions: str
    release: str | None
    skip: tuple[str, ...]
    ignore_missing_schemas: bool
    allow_unchecked: bool
    allow_empty: bool
    skip_non_objects: bool
    ignore_field: tuple[str, ...]
    ignore_filename_pattern: tuple[str, ...]
    fail_on: str
    output: str
    summary: bool
    workers: int | None

    def rules(self, operation: OperationOptions, files: Sequence[Input]) -> VerdictOptions:
        """Raises SourceError."""
        return VerdictOptions(
            directive=_DIRECTIVES[self.field_validation.lower()],
            skipped=frozenset(kind for each in self.skip for kind in each.split(",") if kind),
            allows_unknown_kinds=self.ignore_missing_schemas,
            unions=UnionAlgorithm(self.unions),
            release=self.release,
            skips_non_objects=self.skip_non_objects,
            allows_unchecked=self.allow_unchecked,
            stored=operation.read_stored_objects(files),
            patch=operation.read_patch(),
            is_strict_of_warnings=self.fail_on == "warning",
            keeps_objects=self.output in OBJECT_FORMS,
            ignored=tuple(map(_ignored_field, self.ignore_field)),
        )


def _ignored_field(text: str) -> IgnoredField:
    try:
        return IgnoredField.of(text)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--ignore-field") from error


@click.command(
    epilog=examples(
        ("against the cluster of the current context", "specmux validate manifests/"),
        ("the changes of a branch", "specmux validate --old git:main:manifests manifests/"),
        ("a patch", "specmux validate deploy.yaml --patch scale.yaml --patch-type strategic"),
        (
            "the output of Helm, without a cluster",
            "helm template . | specmux validate --directory schemas/ -",
        ),
        ("in CI, as annotations", "specmux validate -o github --server https://specmux.example manifests/"),
    )
)
@click.argument("paths", metavar="[PATH…|-]", nargs=-1)
@click.option(
    "--field-validation",
    type=click.Choice(tuple(_DIRECTIVES), case_sensitive=False),
    default=Directive.STRICT.value.lower(),
    show_default=True,
    help="Take unknown and duplicate fields as errors (strict, true) or warnings, or ignore them (false).",
)
@click.option(
    "--unions",
    type=click.Choice(tuple(each.value for each in UnionAlgorithm)),
    default=UnionAlgorithm.OFF.value,
    show_default=True,
    help="Also check x-kubernetes-unions: by KEP-1027 (seed), or as servers did until 2023 (legacy).",
)
@release_option("Validate by the rules of this release of Kubernetes: libraries of CEL, formats.")
@click.option(
    "--skip", metavar="KIND", multiple=True, help="Skip this kind: Secret, or v1/Secret. Repeatable."
)
@click.option("--ignore-missing-schemas", is_flag=True, help="Skip kinds that no document describes.")
@click.option(
    "--allow-unchecked",
    is_flag=True,
    help="Accept objects with a rule or field that could not be checked.",
)
@click.option("--allow-empty", is_flag=True, help="Accept PATHs without any object.")
@click.option(
    "--skip-non-objects",
    is_flag=True,
    help="Skip and count files without Kubernetes objects: values, package.json, templates of charts.",
)
@click.option(
    "--ignore-field",
    metavar="[KIND:]/PATH",
    multiple=True,
    help="Validate objects without this field: /sops, Secret:/sops. Repeatable.",
)
@click.option(
    "--ignore-filename-pattern",
    metavar="REGEX",
    multiple=True,
    help="Ignore files whose path has a match. Repeatable.",
)
@fail_on_option("error", "warning", of="findings of this severity")
@operation_options
@click.option("--summary", is_flag=True, help="Also print the counts.")
@click.option(
    "--workers",
    metavar="N",
    type=click.IntRange(1, 256),
    default=None,
    help="Processes for many objects.  [default: one for each processor]",
)
@format_option(*FORMS, *OBJECT_FORMS)
@bundle_options("options", ValidateOptions)
@source_options
def validate(
    paths: Sequence[str], options: ValidateOptions, operation: OperationOptions, source: SourceOptions
) -> None:
    """Validate manifests as an apiserver would.

    Unknown and duplicate fields, types, the schemas of custom resources, and metadata are reported in the
    apiserver's words, with file, line and column. PATH is a file, a folder, git:REV:PATH, or - for standard
    input. CustomResourceDefinitions among the files define their kinds. With --old the objects are updates
    of those that are stored; with --patch they are stored, and patched. With -o yaml or -o object-json the
    valid objects are printed as they would be stored.

    Exit codes: 0 all valid, 1 some invalid, 2 usage, 3 unreadable, 4 no answer, 5 some not checked, or
    no object (see --allow-unchecked, --allow-empty).
    """
    output = options.output
    if not operation.old_from_cluster:  # which means a cluster
        source = source.or_release(options.release)
    if "-" in paths and STDIN in source.files:
        raise click.UsageError("standard input (-) can be read once: as PATH, or with --file")
    with report_errors(), progress("validating"):
        files = manifest_files(paths, ignored=_any_of(options.ignore_filename_pattern))
        rules = options.rules(operation, files)
        inputs = operation.manifests(files, skips_tools_by_name=options.skip_non_objects)
        definitions = definitions_in(item.part for item in inputs)
        described = list(definitions)
        documents = _documents(inputs, definitions, source, described)
        if (note := None if rules.release else newer_note(_server_version(documents))) is not None:
            warn(note)
            rules = replace(rules, release=f"1.{PREVIEW}")
        if (stored := operation.stored_in_cluster(inputs, documents, source)) is not None:
            rules = replace(rules, stored=stored)
        checked = _check_manifests(inputs, documents, definitions, rules, options.workers)
        checked, places = with_places(checked, partial(_known_kinds, documents, source))
    unmatched = unmatched_hints(rules.stored, checked) if rules.stored is not None else ()
    hints = _hints(inputs, paths, checked, places)
    warnings = _object_warnings(inputs, checked, described, rules.release)
    for hint in (*places, *hints, *warnings, *_skip_hints(rules.skipped, checked), *unmatched):
        warn(hint)
    report = report_of(checked, has_summary=options.summary, has_notes=options.summary or output != "text")
    with report_errors():
        if output in OBJECT_FORMS:
            click.echo(render(report, "text", is_coloured=False, version=VERSION), err=True, nl=False)
            write_out(stored_text(checked, output), is_text=True)
        else:
            write_report(report, output)
    outcomes = set() if options.fail_on == "never" else {each.outcome for each in checked}
    if ObjectVerdict.INVALID in outcomes:
        raise click.exceptions.Exit(FOUND)
    is_empty = bool(files) and not inputs and not options.allow_empty and options.fail_on != "never"
    if is_empty or ObjectVerdict.NOT_CHECKED in outcomes:
        raise click.exceptions.Exit(NOT_CHECKED)


def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str] | None:
    try:
        return re.compile("|".join(f"(?:{each})" for each in patterns)) if patterns else None
    except re.error as error:
        raise click.BadParameter(
            f"no regular expression: {error}", param_hint="--ignore-filename-pattern"
        ) from error


def _hints(
    inputs: list[Manifest], paths: Sequence[str], checked: list[ValidatedObject], places: Sequence[str]
) -> Iterator[str]:
    """Next steps for findings that are no object's fault."""
    if others := [each.file for each in checked if each.outcome is ObjectVerdict.NO_OBJECT]:
        documents, files = counted(len(others), "document"), counted(len(set(others)), "file")
        yield f"{documents} in {files} without a Kubernetes object: skipped"
    if unchecked := sum(each.outcome is ObjectVerdict.NOT_CHECKED for each in checked):
        objects = counted(unchecked, "object")
        yield f"{objects} not checked in full: see the notes; --allow-unchecked accepts that"
    if not inputs:
        yield f"no object in {', '.join(paths)}: nothing was validated; --allow-empty accepts that"
    if skipped := [_type(each) for each in checked if each.outcome is ObjectVerdict.NO_SCHEMA]:
        kinds = list_first(sorted(set(skipped)), KINDS_SHOWN)
        yield f"{counted(len(skipped), 'object')} skipped: no document describes {kinds}"
    undecoded = {
        each.file for each in checked if each.outcome is ObjectVerdict.INVALID and each.report.kind is None
    }
    if templates := sorted({item.file for item in inputs if b"{{" in item.part.data} & undecoded):
        yield f"{templates[0]}: a template? Render it first: helm template CHART | specmux validate -"
    if local := sum(is_local_config(item.part) for item in inputs):
        yield f"{counted(local, 'object')} with config.kubernetes.io/local-config: skipped"
    if composites := sorted({item.file for item in inputs if COMPOSITE.encode() in item.part.data}):
        yield f"{composites[0]}: {OF_COMPOSITES}"
    unknown = sorted({_type(each) for each in checked if each.is_of_unknown_kind})
    unknown = [each for each in unknown if not any(place.startswith(f"{each}: ") for place in places)]
    # No CustomResourceDefinition may have the group of ``apps/v1 Deployment``.
    own = [each for each in unknown if "/" not in each or each.partition("/")[0] in BUILT_IN_GROUPS]
    if own:
        yield (
            f"no document describes {list_first(own, KINDS_SHOWN)}, "
            f"which {'is' if len(own) == 1 else 'are'} Kubernetes' own: "
            "name the release that has it with --release, or a --server, or --ignore-missing-schemas"
        )
    if unknown := [each for each in unknown if each not in own]:
        yield (
            f"no document describes {list_first(unknown, KINDS_SHOWN)}: "
            "give the CustomResourceDefinition among the files or with --directory, name a --server, "
            "or --ignore-missing-schemas"
        )


def _object_warnings(
    inputs: Iterable[Manifest],
    checked: Iterable[ValidatedObject],
    definitions: Sequence[Document],
    release: str | None,
) -> Iterator[str]:
    """Warnings of an apiserver and kubectl about valid objects: each text once, never a fault."""
    from specmux_tools.kind_lifecycles import deprecation_of

    kinds = {
        each.report.kind: None
        for each in checked
        if each.report.kind is not None
        and (each.report.is_known or each.outcome is ObjectVerdict.NO_SCHEMA)
        and each.outcome is not ObjectVerdict.SKIPPED
    }
    found = (deprecation_of(kind, definitions, release=release) for kind in kinds)
    yield from dict.fromkeys(text for text in found if text is not None)
    for item in inputs:
        if len(item.part.data) >= LARGE:
            for value in objects_in(object_of(item)):
                if (hint := apply_hint(value)) is not None:
                    yield f"{item.file}: {value.get('kind')} {within(value, 'metadata').get('name')}: {hint}"


def _skip_hints(skipped: Iterable[str], checked: list[ValidatedObject]) -> Iterator[str]:
    """Suggestions for kinds to skip that no object has."""
    kinds = {kind.kind: None for each in checked if (kind := each.report.kind) is not None}
    for wanted in sorted(skipped):
        name = wanted.rpartition("/")[2]
        meant = [each for each in kinds if each != name and each.lower() in (name.lower(), name.lower()[:-1])]
        if name not in kinds and meant:
            yield f"--skip {wanted}: no object is of this kind; did you mean {meant[0]}?"


def _known_kinds(documents: DocumentSet, options: SourceOptions) -> list[GroupVersionKind]:
    with open_documents(options) as source:
        return documents.kinds_beside(known_kinds(source))


def _type(each: ValidatedObject) -> str:
    kind = each.report.kind
    return "" if kind is None else f"{kind.api_version} {kind.kind}"


def _documents(
    inputs: Iterable[Manifest],
    definitions: Sequence[Document],
    options: SourceOptions,
    described: list[Document],
) -> DocumentSet:
    """The documents that the objects need: of the definitions among them, then of the source. ``described``
    takes the definitions of the source."""
    own: Mapping[GroupVersion, Document] = {}
    if definitions:
        from specmux_converters.crd import AS_DEFINED, build  # takes as long to import as all else here

        own = build(definitions, templates=AS_DEFINED).documents

    def load(needed: Collection[GroupVersion]) -> Mapping[GroupVersion, Document]:
        with open_documents(options) as source:
            loaded = source.load(needed)
        report_unread(loaded.unread)
        described.extend(loaded.definitions)
        return loaded.documents.documents

    return documents_for(inputs, own, load)


def _server_version(documents: DocumentSet) -> Any:
    """The version of the apiserver that published them: it is in each, of custom resources too since 1.36."""
    infos = (mapping(document.get("info")) for document in documents.documents.values())
    return next((info.get("version") for info in infos if newer_note(info.get("version"))), None)


def _check_manifests(
    inputs: list[Manifest],
    documents: DocumentSet,
    definitions: list[Document],
    rules: VerdictOptions,
    workers: int | None,
) -> list[ValidatedObject]:
    """In the order of the files, whoever checks them."""
    most = min(workers or processors(), len(inputs) // FEW_OBJECTS + 1)
    if most <= 1:
        validator = _validator(documents, definitions, rules)
        return [each for item in inputs for each in check(item, validator, rules)]
    size = -(-len(inputs) // (most * 4))
    chunks = [inputs[start : start + size] for start in range(0, len(inputs), size)]

    from specmux_aggregator.interruptible_pool import InterruptiblePool  # few commands start processes

    with InterruptiblePool(most, initializer=_start, initargs=(documents, definitions, rules)) as pool:
        return [each for found in pool.map(_check_chunk, chunks) for each in found]


def _validator(documents: DocumentSet, definitions: list[Document], rules: VerdictOptions) -> Validator:
    return Validator(
        documents,
        keeps_objects=rules.keeps_objects,
        preserving=preserving_kinds(definitions),
        unions=rules.unions,
        release=rules.release,
        definitions=definitions,
    )


_process: dict[str, Any] = {}
"""The validator and the rules of a worker process."""


def _start(documents: DocumentSet, definitions: list[Document], rules: VerdictOptions) -> None:
    _process["validator"] = _validator(documents, definitions, rules)
    _process["rules"] = rules


def _check_chunk(chunk: list[Manifest]) -> list[ValidatedObject]:
    return [each for item in chunk for each in check(item, _process["validator"], _process["rules"])]
