"""``specmux merge``: all group-versions of a folder or a server as one document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import click

from specmux_aggregator.commands.listing import examples
from specmux_aggregator.commands.loss_counts import counted
from specmux_aggregator.commands.output import document_format
from specmux_aggregator.commands.progress import progress
from specmux_aggregator.errors import SourceError, SourceUnreachable
from specmux_aggregator.jobs.file_names import group_version_of_file
from specmux_aggregator.sources import SourceOptions, opened, server_options
from specmux_aggregator.sources.document_files import (
    FileRefused,
    document_files,
    output_file_option,
    read_file,
    refusals,
    reported_refusals,
    write_out,
)
from specmux_aggregator.sources.options import is_given
from specmux_converters.document import Document, canonical
from specmux_converters.errors import cut
from specmux_converters.group_versions import GroupVersion
from specmux_converters.merging.merge import Merged
from specmux_converters.merging.merge import merge as merge_documents
from specmux_converters.recognise import DocumentKind, recognise
from specmux_converters.swagger2.conversion import convert
from specmux_converters.yaml.writer import to_yaml


@click.command(
    epilog=examples(
        ("the cluster of the current context", "specmux merge --output-file all.json"),
        ("a folder, as YAML", "specmux merge documents/ -o yaml"),
        ("a server behind kubectl proxy", "specmux merge http://127.0.0.1:8001"),
    )
)
@click.argument("source_name", metavar="[DIR|URL]", required=False)
@output_file_option
@document_format
@server_options
def merge(source_name: str | None, output: str, output_file: Path | None, source: SourceOptions) -> None:
    """Merge all group-versions into one OpenAPI v3 document.

    They are those of a folder, or of a server: a URL, or the cluster of a kubeconfig's context. Components of
    one name that differ are renamed, and what cannot be said twice is reported.

    Exit codes: 0 ok, 1 refused or not reached, 2 usage.
    """
    is_folder = source_name is not None and Path(source_name).is_dir()
    if source_name is not None and (is_given("server") or source.kubeconfig or source.context):
        named = f"{cut(source_name)} and the server of the options"
        raise click.UsageError(f"{named} are different sources; give one of them")
    if is_folder and source.offline:
        raise click.UsageError("--offline is for servers; a folder is read without one anyway")
    with reported_refusals(), progress("merging"):
        if source_name is not None and is_folder:
            documents = _read(Path(source_name))
        else:
            documents = _fetched(_server(source_name, source))
        with refusals(source_name or "the cluster"):
            merged = merge_documents(documents)
        _report(merged)
        data = to_yaml(merged.document) if output == "yaml" else canonical(merged.document)
        write_out(data, output_file, is_text=True)


def _server(name: str | None, source: SourceOptions) -> SourceOptions:
    """Raises click.UsageError for a name that is no URL."""
    if name is None:
        return source
    if not name.lower().startswith(("http://", "https://")):
        raise click.UsageError(f"neither a folder nor a URL: {cut(name)}")
    return replace(source, server=name)


def _fetched(source: SourceOptions) -> dict[GroupVersion, Document]:
    """All documents of a server, converted where it has v2 only. Raises FileRefused, click.UsageError."""
    try:
        with opened(source) as server:
            loaded = server.load()
    except SourceError as error:
        raise click.UsageError(str(error)) from error
    except SourceUnreachable as error:
        raise FileRefused(error, "") from error
    for unread in loaded.unread:
        raise FileRefused(unread.where, unread.reason)
    return dict(loaded.documents.documents)


def _read(folder: Path) -> dict[GroupVersion, Document]:
    """The v3 documents of a folder, and what its Swagger 2.0 documents convert to. Raises FileRefused."""
    documents: dict[GroupVersion, Document] = {}
    for path in document_files(folder):
        relative = path.relative_to(folder).as_posix()
        with refusals(path):
            found = recognise(read_file(path))
            match found.kind:
                case DocumentKind.OPENAPI_3:
                    key = group_version_of_file(relative) or GroupVersion(relative)
                    new: Mapping[GroupVersion, Document] = {key: found.documents[0]}
                case DocumentKind.SWAGGER_2:
                    new = _split(found.documents[0], path)
                case DocumentKind.CRDS:
                    raise FileRefused(path, "CustomResourceDefinitions, not OpenAPI")
        for key, document in new.items():
            # Each apiserver's Swagger 2.0 has a /version/ of its own: what differs is told as a conflict.
            documents[GroupVersion(f"{key} of {relative}") if key in documents else key] = document
    return documents


def _report(merged: Merged) -> None:
    """A line for each, however many: nothing else says what a component is called now."""
    for each in merged.renamed:
        place = f"{cut(each.group_version)}: {each.kind} {cut(each.name)}"
        click.echo(f"{place} is {cut(each.new_name)}", err=True)
    for conflict in merged.conflicts:
        place = f"{cut(conflict.group_version)}: {cut(conflict.pointer)}"
        click.echo(f"{place}: {conflict.reason}", err=True)


def _split(swagger: Document, where: object) -> dict[GroupVersion, Document]:
    """The group-versions of a Swagger 2.0 document. What that loses is counted: ``convert`` lists it."""
    conversion = convert(swagger)
    if conversion.losses:
        click.echo(f"{cut(str(where))}: {counted(conversion.losses)}", err=True)
    return dict(conversion.documents)
