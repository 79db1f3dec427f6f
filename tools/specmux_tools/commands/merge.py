"""``specmux merge``: all group-versions of a folder or a server as one document."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import click

from specmux_aggregator.command_line.lazy_commands import examples
from specmux_aggregator.command_line.output import document_format
from specmux_aggregator.console import progress
from specmux_aggregator.exits import report_errors
from specmux_converters.crd import build
from specmux_converters.document import Document, canonical_pieces
from specmux_converters.errors import cut
from specmux_converters.from_swagger2.conversion import convert
from specmux_converters.group_versions import GroupVersion
from specmux_converters.merging import MergeResult
from specmux_converters.merging import merge as merge_documents
from specmux_converters.recognise import DocumentKind
from specmux_converters.short_names import with_short_names
from specmux_converters.yaml import to_yaml
from specmux_tools.command_line.output_files import output_file_option, write_out
from specmux_tools.command_line.report_output import count_losses
from specmux_tools.sources import SourceOptions, own_kinds_option, source_options
from specmux_tools.sources.input import Input, refusals
from specmux_tools.sources.open_source import SourceWord, inputs_of, is_path
from specmux_tools.sources.options import is_given
from specmux_tools.sources.source import FileRefused


@click.command(
    epilog=examples(
        ("the cluster of the current context", "specmux merge --output-file all.json"),
        ("Deployment instead of io.k8s.api.apps.v1.Deployment", "specmux merge --short-names"),
        ("a folder, as YAML", "specmux merge documents/ -o yaml"),
        ("a server behind kubectl proxy", "specmux merge http://127.0.0.1:8001"),
    )
)
@click.argument("words", metavar="[SOURCE|-]...", nargs=-1, type=SourceWord())
@output_file_option
@click.option(
    "--short-names",
    is_flag=True,
    help="Names of schemas without package paths; those that collide are reported.",
)
@own_kinds_option
@document_format
@source_options
def merge(
    words: tuple[str, ...], output: str, output_file: Path | None, short_names: bool, source: SourceOptions
) -> None:
    """Merge all group-versions into one OpenAPI v3 document.

    SOURCE is a folder, a file, the URL of a server or of a document, git:REV:PATH, oci:PATH,
    context:NAME of a kubeconfig, or a bundle of "specmux cache export". Components that differ under one name
    are renamed; other conflicts are reported.

    Exit codes: 0 ok, 2 usage, 3 unreadable, 4 no answer.
    """
    if words and (is_given("server") or source.kubeconfig or source.context or source.kubernetes):
        named = f"{cut(words[0])} and what the options name"
        raise click.UsageError(f"{named} are different sources; give one of them")
    if words and source.offline and all(map(is_path, words)):
        raise click.UsageError("--offline is for servers; a folder is read without one anyway")
    with report_errors(), progress("merging"):
        documents = _documents(inputs_of(words, source))
        with refusals(", ".join(words) or "the cluster"):
            merged = merge_documents(documents)
        _report(merged)
        document = merged.document
        if short_names:
            short = with_short_names(document)
            document = short.document
            for each in short.collisions:
                named = ", ".join(f"{cut(old)} is {cut(new)}" for old, new in each.names.items())
                click.echo(f"{cut(each.word)} is the name of {len(each.names)} schemas: {named}", err=True)
        data = to_yaml(document) if output == "yaml" else canonical_pieces(document)
        write_out(data, output_file, is_text=True)


def _documents(files: Iterable[Input]) -> dict[GroupVersion, Document]:
    """The v3 documents, what those of Swagger 2.0 convert to, and what an apiserver publishes of all
    CustomResourceDefinitions together. Raises FileRefused."""
    documents: dict[GroupVersion, Document] = {}
    manifests: list[Document] = []
    for file in files:
        relative = file.relative or file.name
        with refusals(file.name):
            found = file.recognise()
            match found.kind:
                case DocumentKind.OPENAPI_3:
                    key = file.group_version or GroupVersion(relative)
                    new: Mapping[GroupVersion, Document] = {key: found.documents[0]}
                case DocumentKind.SWAGGER_2:
                    conversion = convert(found.documents[0])
                    if conversion.losses:  # ``convert`` lists them
                        click.echo(f"{cut(file.name)}: {count_losses(conversion.losses)}", err=True)
                    new = conversion.documents
                case DocumentKind.CRDS:
                    manifests += found.documents
                    continue
        for key, document in new.items():
            # Each apiserver's Swagger 2.0 has a /version/ of its own: what differs is told as a conflict.
            documents[GroupVersion(f"{key} of {relative}") if key in documents else key] = document
    built = build(manifests)
    for problem in built.problems:
        text = f"{cut(problem.pointer)}: {problem.reason}"
        if not built.documents:
            raise FileRefused(problem.crd or "(manifest)", text)
        click.echo(f"{cut(problem.crd) or '(manifest)'}: {text}", err=True)
    for key, document in built.documents.items():
        documents[GroupVersion(f"{key} of definitions") if key in documents else key] = document
    return documents


def _report(merged: MergeResult) -> None:
    """A line for each, however many: nothing else says what a component is called now."""
    for each in merged.renamed:
        place = f"{cut(each.group_version)}: {each.kind} {cut(each.name)}"
        click.echo(f"{place} is {cut(each.new_name)}", err=True)
    for conflict in merged.conflicts:
        place = f"{cut(conflict.group_version)}: {cut(conflict.pointer)}"
        click.echo(f"{place}: {conflict.reason}", err=True)
