"""``specmux merge``."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import click

from specmux_aggregator.build.file_names import group_version_of_file
from specmux_aggregator.commands.document_files import (
    Refused,
    document_files,
    read_file,
    refusals,
    reported_refusals,
    write_file,
    write_out,
)
from specmux_aggregator.commands.loss_counts import counted
from specmux_aggregator.commands.progress import progress
from specmux_aggregator.config.setting_fields import BadValue
from specmux_aggregator.config.settings import Limits, Polling
from specmux_aggregator.config.urls import backend_url
from specmux_aggregator.http.content_codings import decoded
from specmux_aggregator.model.backend import Backend, BackendName, BackendTLS, Credentials
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.observation import Hash
from specmux_aggregator.upstream.client import BackendClient, Moved, NotModified, Payload
from specmux_converters.document import Document, canonical, parse
from specmux_converters.errors import cut
from specmux_converters.group_versions import GroupVersion
from specmux_converters.merging.merge import Merged
from specmux_converters.merging.merge import merge as merge_documents
from specmux_converters.recognise import Kind, kind_of, recognise
from specmux_converters.swagger2.conversion import convert

MOVES_MAX: Final = 3
"""How often one document may change while it is asked for."""

TOTAL_BYTES_MAX: Final = 1024 * 1024 * 1024


@click.command()
@click.argument("source", metavar="DIR|URL")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Instead of standard output.",
)
@click.option(
    "--ca-file",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="What the server's certificate is checked with.",
)
@click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A bearer token to ask with.",
)
def merge(source: str, output: Path | None, ca_file: Path | None, token_file: Path | None) -> None:
    """Merge all group-versions of a folder, or of a server (http://127.0.0.1:8001, for "kubectl proxy"), into
    one OpenAPI v3 document.

    Components of one name that differ are renamed, and what cannot be said twice is reported.

    Exit codes: 0 ok, 1 refused or not reached, 2 usage.
    """
    with reported_refusals(), progress("merging"):
        if source.lower().startswith(("http://", "https://")):
            backend = _backend(source, ca_file, token_file)
            documents = asyncio.run(_fetched(backend))
        elif Path(source).is_dir():
            documents = _read(Path(source))
        else:
            raise click.UsageError(f"neither a folder nor a URL: {cut(source)}")
        with refusals(source):
            merged = merge_documents(documents)
        _report(merged)
        data = canonical(merged.document)
        if output is None:
            write_out(data, is_text=True)
        else:
            write_file(output, data)


def _read(folder: Path) -> dict[GroupVersion, Document]:
    """The v3 documents of a folder, and what its Swagger 2.0 documents convert to. Raises Refused."""
    documents: dict[GroupVersion, Document] = {}
    for path in document_files(folder):
        relative = path.relative_to(folder).as_posix()
        with refusals(path):
            found = recognise(read_file(path))
            match found.kind:
                case Kind.OPENAPI_3:
                    key = group_version_of_file(relative) or GroupVersion(relative)
                    new: Mapping[GroupVersion, Document] = {key: found.documents[0]}
                case Kind.SWAGGER_2:
                    new = _split(found.documents[0], path)
                case Kind.CRDS:
                    raise Refused(path, "CustomResourceDefinitions, not OpenAPI")
        for key, document in new.items():
            # Each apiserver's Swagger 2.0 has a /version/ of its own: what differs is told as a conflict.
            documents[GroupVersion(f"{key} of {relative}") if key in documents else key] = document
    return documents


def _backend(url: str, ca_file: Path | None, token_file: Path | None) -> Backend:
    try:
        checked = backend_url(url)
    except BadValue as error:
        raise click.UsageError(str(error)) from error
    tls, credentials = BackendTLS(ca_file=ca_file), Credentials(token_file=token_file)
    return Backend(name=BackendName("server"), url=checked, tls=tls, credentials=credentials)


async def _fetched(backend: Backend) -> dict[GroupVersion, Document]:
    """All documents of a server, converted where it speaks v2 only. Raises Refused."""
    client = BackendClient(backend, polling=Polling(), limits=Limits())
    try:
        root = await client.root()
        match root:
            case Failure(cause=Cause.NOT_FOUND):
                return _converted(await client.swagger(), backend)
            case Failure():
                raise Refused(backend.url, root.detail)
            case NotModified():
                raise Refused(backend.url, "304 to a plain request")
        fetched: dict[GroupVersion, Document] = {}
        total = 0
        for key, hash in root.offers.items():
            data = await _document(client, key, hash)
            total += len(data)
            if total > TOTAL_BYTES_MAX:
                raise Refused(backend.url, f"more than {TOTAL_BYTES_MAX} bytes together")
            with refusals(key):
                fetched[key] = parse(data)
                if kind_of(fetched[key]) is not Kind.OPENAPI_3:
                    raise Refused(key, "no OpenAPI 3.0")
        return fetched
    finally:
        await client.close()


async def _document(client: BackendClient, key: GroupVersion, hash: Hash | None) -> bytes:
    for _ in range(MOVES_MAX):
        answer = await client.document(key, hash=hash, accept_gzip=True)
        match answer:
            case Payload():
                return _plain(answer, key)
            case Moved():
                hash = answer.hash
            case Failure():
                raise Refused(key, answer.detail)
            case NotModified():
                break
    raise Refused(key, "keeps changing")


def _converted(answer: Payload | NotModified | Failure, backend: Backend) -> dict[GroupVersion, Document]:
    match answer:
        case Payload():
            with refusals(backend.url):
                found = recognise(_plain(answer, backend.url))
                if found.kind is not Kind.SWAGGER_2:
                    raise Refused(backend.url, "its /openapi/v2 is no Swagger 2.0")
                return _split(found.documents[0], backend.url)
        case Failure():
            raise Refused(backend.url, answer.detail)
        case NotModified():
            raise Refused(backend.url, "304 to a plain request")


def _plain(answer: Payload, where: str) -> bytes:
    with refusals(where):
        return decoded(answer.body, answer.coding, max_bytes=Limits().max_document_bytes)


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
