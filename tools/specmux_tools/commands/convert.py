"""``specmux convert``: one file or folder to OpenAPI v3, in any form and in pieces; or to Swagger 2.0."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, TypeAlias

import click
import orjson

from specmux_aggregator.command_line.common_options import release_option
from specmux_aggregator.command_line.lazy_commands import examples
from specmux_aggregator.command_line.output import WrittenPath
from specmux_aggregator.console import progress
from specmux_aggregator.exits import FOUND, report_errors
from specmux_converters import codecs, media_types
from specmux_converters.codecs import messages
from specmux_converters.crd import build, templates_for
from specmux_converters.document import Document, canonical
from specmux_converters.errors import ConverterError, cut
from specmux_converters.from_swagger2.conversion import convert as convert_documents
from specmux_converters.from_swagger2.conversion import convert_whole
from specmux_converters.from_swagger2.reading.source import Profile
from specmux_converters.group_versions import GroupVersion, group_version_of
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.losses import Grade, Loss
from specmux_converters.media_types import FORMS
from specmux_converters.merge_types import to_merge_schema
from specmux_converters.recognise import DocumentKind
from specmux_converters.to_swagger2.conversion import join_pieces, piece_of
from specmux_converters.yaml import to_yaml
from specmux_tools.command_line.output_files import file_of, output_file_option, write_file, write_out
from specmux_tools.command_line.report_output import count_losses, list_losses
from specmux_tools.sources import SourceOptions, source_options
from specmux_tools.sources.input import Input, refusals
from specmux_tools.sources.open_source import SourceWord, inputs_of
from specmux_tools.sources.options import bundle_options
from specmux_tools.sources.source import FileRefused

REASONS_NAMED: Final = 5
"""Files of a folder without documents that are named with what is wrong."""


Encode: TypeAlias = Callable[[Document, codecs.Fragments, str | None], bytes]
"""The bytes of a document; the last is the release of Kubernetes that smd depends on."""


@dataclass(frozen=True, slots=True)
class DocumentFormat:
    """The form in which documents are written. ``sorts_keys``: of documents that were made here."""

    suffix: str
    is_text: bool
    encode: Encode
    sorts_keys: bool = False


def _encode(
    media_type: media_types.MediaType, document: Document, fragments: codecs.Fragments, _: str | None
) -> bytes:
    return codecs.encode(document, media_type, fragments=fragments)


def _encode_merge_schema(
    write: Callable[[Document], bytes], document: Document, _: codecs.Fragments, release: str | None
) -> bytes:
    return write(to_merge_schema(document, release=release))


SWAGGER: Final = "v2"
"""The other direction."""

FORMATS: Final[Mapping[str, DocumentFormat]] = {
    **{
        form.suffix[1:]: DocumentFormat(
            form.suffix, form.is_text, partial(_encode, form.media_type), sorts_keys=form.is_text
        )
        for form in FORMS.values()
    },
    "yaml": DocumentFormat(".yaml", True, lambda document, *_: to_yaml(document)),
    "smd": DocumentFormat(".yaml", True, partial(_encode_merge_schema, to_yaml)),
    "smd-json": DocumentFormat(".json", True, partial(_encode_merge_schema, orjson.dumps)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConvertOptions:
    """The output: in which form, and where."""

    profile: Profile
    split: Path | None
    output_file: Path | None
    form: str
    report: str | None
    strict: bool
    verify: bool
    release: str | None

    def check(self) -> None:
        """Raises click.UsageError for options that do not go together."""
        if self.split is not None and self.output_file is not None:
            raise click.UsageError("--split writes a folder, --output-file one document: give one of them")
        if self.verify and self.form != "pb":
            raise click.UsageError("--verify reads Protobuf back; give it with --to pb")
        if self.form == SWAGGER and self.split is not None:
            raise click.UsageError("--to v2 writes one document: give --output-file instead of --split")

    @property
    def format(self) -> DocumentFormat:
        """The form of the documents."""
        return FORMATS["json" if self.form == SWAGGER else self.form]


@click.command(
    epilog=examples(
        (
            "Swagger 2.0 of a cluster, as one OpenAPI v3 document",
            "kubectl get --raw /openapi/v2 | specmux convert -",
        ),
        ("a file for each group-version", "specmux convert swagger.json --split documents/"),
        (
            "CustomResourceDefinitions, as their apiserver publishes them",
            "specmux convert crds/ --split documents/",
        ),
        ("the schema of structured-merge-diff", "specmux convert apps-v1.json --to smd"),
        ("Swagger 2.0 of all documents of a folder", "specmux convert documents/ --to v2"),
        ("the losses", "specmux convert swagger.json --losses text > v3.json"),
    )
)
@click.argument("words", metavar="[SOURCE|-]...", nargs=-1, type=SourceWord())
@click.option(
    "--profile", type=click.Choice(["kubernetes", "oas"]), default="kubernetes", show_default=True,
    help="Follow Kubernetes' v3, or the OpenAPI Specification.",
)  # fmt: skip
@click.option(
    "--split", metavar="DIR", type=WrittenPath("a folder", path_type=Path, file_okay=False),
    help="One file per group-version.",
)  # fmt: skip
@output_file_option
@click.option(
    "--losses", "report", type=click.Choice(["text", "json"]),
    help="List losses on standard error, and notes: constructs expressed differently.",
)  # fmt: skip
@click.option(
    "--strict",
    is_flag=True,
    help="Write nothing and exit with 1 when something would be lost. Notes do not count.",
)
@release_option("Publish CustomResourceDefinitions, and write smd, as this release of Kubernetes does.")
@click.option(
    "--verify", is_flag=True, help="With --to pb: read the output back with the protobuf library.",
)  # fmt: skip
@click.option(
    "-o", "--output", "--to", "form", type=click.Choice([*FORMATS, SWAGGER]), default="json",
    show_default=True,
    help="Output format. smd, smd-json: the schema of structured-merge-diff, as YAML or JSON."
    " v2: OpenAPI v3 and CustomResourceDefinitions as one document of Swagger 2.0, in JSON.",
)  # fmt: skip
@bundle_options("options", ConvertOptions)
@source_options
def convert(words: tuple[str, ...], options: ConvertOptions, source: SourceOptions) -> None:
    """Convert a document to OpenAPI v3.

    SOURCE is a file, a folder, the URL of a document or a server, git:REV:PATH, oci:PATH, context:NAME of a
    kubeconfig, or a bundle of "specmux cache export". A document may be Swagger 2.0 as JSON, YAML or
    Protobuf, or OpenAPI v3 in any encoding, which is re-encoded only, or CustomResourceDefinitions as JSON or
    YAML. Several documents are converted with --split, all CustomResourceDefinitions together.

    One document is written to standard output or --output-file; with --split each to DIR/apis/apps/v1.json
    and so on. Losses are reported on standard error.

    --to v2 converts the other way: OpenAPI v3 and CustomResourceDefinitions become one Swagger 2.0 document.

    Exit codes: 0 ok, 1 losses under --strict, 2 usage, 3 unreadable, 4 no answer.
    """
    options.check()
    source = source.or_release(options.release)
    if not words and not source.names_one:
        raise click.UsageError("Missing argument 'SOURCE': a file, a folder, a URL; or --server, --context")
    with report_errors(), progress("converting"):
        files = inputs_of(words, source)
        where = ", ".join(words) or str(source.server or "the options")
        if options.form == SWAGGER:
            result = _swagger(files, where, options)
        else:
            result = _convert_files(files, where, options, is_split=options.split is not None)
        _report(result.losses, options.report)
        if options.strict and any(loss.grade is Grade.LOSS for loss in result.losses):
            raise click.exceptions.Exit(FOUND)
        _write(result, where, options)


@dataclass(frozen=True, slots=True)
class _Result:
    """``documents`` has one entry without a key unless they were split."""

    documents: Mapping[GroupVersion | None, Document]
    losses: Sequence[Loss] = ()
    as_is: frozenset[GroupVersion | None] = frozenset()
    """Keys of the documents that were v3 already: they keep their key order."""


def _convert_files(files: Sequence[Input], where: str, options: ConvertOptions, *, is_split: bool) -> _Result:
    """Raises FileRefused."""
    if len(files) == 1:
        return _convert_file(files[0], options, is_split=is_split)
    manifests, losses = _manifests(files)
    if manifests:
        return _publish_definitions(manifests, where, options, is_split=is_split, losses=losses)
    results, losses = [], []
    for file in files:
        try:
            results.append((file, _convert_file(file, options, is_split=True)))
        except FileRefused as refused:
            losses.append(Loss("", "file", str(refused)))
    if not results:
        reasons = "".join(f"\n  {cut(loss.reason)}" for loss in losses[:REASONS_NAMED])
        raise FileRefused(where, f"no document in it can be read{reasons}")
    if is_split:
        return _join_results(results, losses)
    if len(results) == 1:
        alone = _convert_file(results[0][0], options, is_split=False)
        return replace(alone, losses=(*alone.losses, *losses))
    raise FileRefused(
        where, f"{len(results)} documents; write them with --split DIR, or join them with merge"
    )


def _convert_file(file: Input, options: ConvertOptions, *, is_split: bool) -> _Result:
    with refusals(file.name):
        found = file.recognise()
        match found.kind:
            case DocumentKind.SWAGGER_2 if is_split:
                conversion = convert_documents(found.documents[0], profile=options.profile)
                return _Result(dict(conversion.documents.items()), (*found.losses, *conversion.losses))
            case DocumentKind.SWAGGER_2:
                whole = convert_whole(found.documents[0], profile=options.profile)
                return _Result({None: whole.document}, (*found.losses, *whole.losses))
            case DocumentKind.OPENAPI_3:
                key = _key_of(file, found.documents[0]) if is_split else None
                return _Result({key: found.documents[0]}, found.losses, frozenset({key}))
            case DocumentKind.CRDS:
                return _publish_definitions(
                    found.documents, file.name, options, is_split=is_split, losses=found.losses
                )


def _swagger(files: Sequence[Input], where: str, options: ConvertOptions) -> _Result:
    """All documents as one of Swagger 2.0. Raises FileRefused."""
    if len(files) != 1 or files[0].relative:
        converted = _convert_files(files, where, options, is_split=True)
    else:
        with refusals(where):
            found = files[0].recognise()
        if found.kind is DocumentKind.SWAGGER_2:
            raise FileRefused(where, "it is Swagger 2.0 already")
        if found.kind is DocumentKind.CRDS:
            converted = _publish_definitions(
                found.documents, where, options, is_split=True, losses=found.losses
            )
        else:
            converted = _Result({None: found.documents[0]}, found.losses)
    with refusals(where):
        pieces = {
            str(key or ""): piece_of(each, profile=options.profile)
            for key, each in converted.documents.items()
        }
        made = join_pieces(pieces)
    return _Result({None: made.document}, (*converted.losses, *made.losses), frozenset({None}))


def _join_results(results: Sequence[tuple[Input, _Result]], losses: Sequence[Loss]) -> _Result:
    """One result for the files of a folder. Raises FileRefused where two of them gave one group-version."""
    documents: dict[GroupVersion | None, Document] = {}
    as_is: set[GroupVersion | None] = set()
    found = list(losses)
    for file, result in results:
        twice = sorted(str(key) for key in documents.keys() & result.documents.keys())
        if twice:
            raise FileRefused(file.name, f"{cut(twice[0])} is in another file too")
        documents |= result.documents
        as_is |= result.as_is
        found += [loss._replace(pointer=f"{Path(file.name).name}#{loss.pointer}") for loss in result.losses]
    return _Result(documents, found, frozenset(as_is))


def _manifests(files: Sequence[Input]) -> tuple[list[Document], list[Loss]]:
    """The CustomResourceDefinitions of a folder. Files of other kinds lie beside them, a kustomization for
    one; only those that speak of CustomResourceDefinitions and cannot be read are losses."""
    manifests: list[Document] = []
    losses: list[Loss] = []
    for file in files:
        try:
            found = file.recognise()
        except ConverterError as error:
            if b"CustomResourceDefinition" in file.read():
                losses.append(Loss(error.pointer, "file", f"{Path(file.name).name}: {error.reason}"))
            continue
        if found.kind is DocumentKind.CRDS:
            manifests += found.documents
    return manifests, losses


def _publish_definitions(
    manifests: Sequence[Document],
    where: str,
    options: ConvertOptions,
    *,
    is_split: bool,
    losses: Sequence[Loss] = (),
) -> _Result:
    """The documents that an apiserver publishes for CustomResourceDefinitions. Raises FileRefused."""
    built = build(manifests, templates=templates_for(options.release))
    problems = (Loss(each.pointer, each.construct, f"{each.crd}: {each.reason}") for each in built.problems)
    losses = (*losses, *problems)
    if is_split:
        return _Result(dict(built.documents.items()), losses)
    if len(built.documents) != 1:
        raise FileRefused(where, f"{len(built.documents)} group-versions; write them with --split")
    return _Result({None: next(iter(built.documents.values()))}, losses)


def _key_of(file: Input, document: Document) -> GroupVersion:
    """The group-version of an OpenAPI v3 document: told by its name below the folder, else by its paths."""
    if file.group_version is not None:
        return file.group_version
    keys = {group_version_of(each) for each in document.get("paths") or ()}
    key = keys.pop() if len(keys) == 1 else None
    if key is None:
        raise FileRefused(
            file.name, "OpenAPI v3 is not split: a document must have the paths of one group-version"
        )
    return key


def _report(losses: Sequence[Loss], form: str | None) -> None:
    """All of them in the asked form, or how many there are of each kind."""
    match form:
        case "json":
            click.echo(orjson.dumps([loss._asdict() for loss in losses]), err=True)
        case "text":
            for line in list_losses(losses):
                click.echo(line, err=True)
        case _ if losses:
            click.echo(f"{count_losses(losses)} (--losses text lists them)", err=True)


def _write(result: _Result, where: str, options: ConvertOptions) -> None:
    form, fragments = options.format, codecs.Fragments()
    for key, document in result.documents.items():
        sorts_keys = form.sorts_keys and key not in result.as_is
        with refusals(key or where):
            data = canonical(document) if sorts_keys else form.encode(document, fragments, options.release)
            if options.verify:
                messages.verify(data)
        if options.split is None or key is None:
            write_out(data, options.output_file, is_text=form.is_text)
        else:
            write_file(file_of(options.split, key, form.suffix), data)
