"""What ``specmux diff`` compares: each word, read into what it serves.

Files are told apart by what they hold. CustomResourceDefinitions are read as manifests, since a document made
of them does not say which versions are deprecated or stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import click

from specmux_aggregator.console import warn
from specmux_aggregator.http.content_codings import BadCoding, TooLarge
from specmux_aggregator.jobs.file_names import group_version_of_file, is_document_name
from specmux_aggregator.sources import SourceOptions
from specmux_aggregator.sources.document_files import FileRefused, given_files
from specmux_aggregator.sources.files import unpacked
from specmux_aggregator.sources.git_files import PREFIX as GIT
from specmux_aggregator.sources.git_files import git_files
from specmux_aggregator.sources.options import CONTEXT, STDIN
from specmux_converters.document import Document
from specmux_converters.errors import ConverterError, cut
from specmux_converters.recognise import DocumentKind, recognise
from specmux_schemas.differences import Served, add_document, add_manifests

_HASH: Final = re.compile(r"[0-9A-Fa-f]{32,128}")
_HTTP: Final = ("http://", "https://")
_ROOT_PATHS: Final = ("/openapi/v3/", "/openapi/v2")


@dataclass(slots=True)
class _Read:
    """Documents as they were found: v3 first, then what Swagger 2.0 converts to."""

    documents: list[tuple[str, Document]] = field(default_factory=list)
    swagger: list[tuple[str, Document]] = field(default_factory=list)
    manifests: list[tuple[str, Document]] = field(default_factory=list)


def served_by(
    word: str, source: SourceOptions, *, group_versions: tuple[str, ...], state: Path | None = None
) -> Served:
    """What a word stands for. ``state``: where hashes are looked up. Raises FileRefused, SpecmuxError,
    click.BadParameter."""
    if state is not None and len(group_versions) == 1 and is_hash(word):
        from specmux_aggregator.sources.kept_documents import kept_document

        return kept_document(word, group_versions[0], state)
    if word.startswith(CONTEXT) or word.lower().startswith(_HTTP):
        served = _of_server(word, source)
    elif word.startswith(GIT):
        served = _of_files(git_files(word), where=word)
    else:
        served = _of_path(word)
    if group_versions:
        for name in [key for key in served.group_versions if key not in group_versions]:
            del served.group_versions[name]
    return served


def is_hash(word: str) -> bool:
    return _HASH.fullmatch(word) is not None and not Path(word).exists()


def _of_path(word: str) -> Served:
    path = Path(word)
    if path != STDIN and not path.exists():
        raise click.UsageError(
            f"{cut(word)}: no such file or folder, nor http(s)://, git:REV:PATH or context:NAME"
        )
    files = given_files([path])
    where = "standard input" if path == STDIN else word
    return _of_files({each.name: each.data for each in files}, where=where)


def _of_server(word: str, source: SourceOptions) -> Served:
    if word.lower().startswith(_HTTP) and _is_document(word):
        from specmux_aggregator.sources.answers import download

        return _of_files({word: download(source.at(word))}, where=word)
    from specmux_aggregator.sources import opened

    served = Served()
    with opened(source.at(word)) as server:
        loaded = server.load()
    if loaded.unread:
        # A document that is missing would be told as a group-version that is gone.
        raise FileRefused(loaded.unread[0].where, loaded.unread[0].reason)
    for document in loaded.documents.documents.values():
        add_document(served, document)
    return served


def _is_document(url: str) -> bool:
    path = url.partition("?")[0].partition("#")[0]
    return is_document_name(path) or any(part in path for part in _ROOT_PATHS)


def _of_files(files: Mapping[str, bytes], *, where: str) -> Served:
    """Of several files, what is no document is told and skipped; there has to be one that is."""
    read = _Read()
    refusals: list[str] = []
    for name, data in files.items():
        try:
            _recognise(name, data, read)
        except (ConverterError, BadCoding, TooLarge) as error:
            refusals.append(f"{cut(name)}: {error}" if len(files) > 1 else str(error))
    served = _served(read, refusals)
    if not served.group_versions and not served.stored_versions:
        raise FileRefused(where, "; ".join(refusals[:3]) or "nothing in it is served")
    for refusal in refusals:
        warn(refusal)
    return served


def _recognise(name: str, data: bytes, read: _Read) -> None:
    found = recognise(unpacked(data))
    into = {
        DocumentKind.OPENAPI_3: read.documents,
        DocumentKind.SWAGGER_2: read.swagger,
        DocumentKind.CRDS: read.manifests,
    }
    into[found.kind].extend((name, document) for document in found.documents)


def _served(read: _Read, refusals: list[str]) -> Served:
    served = Served()
    seen = set()
    for name, document in read.documents:
        add_document(served, document)
        seen.add(group_version_of_file(name))
    for _, swagger in read.swagger:
        _add_swagger(served, swagger, seen)
    for name, manifest in read.manifests:
        try:
            problems: Iterable[Any] = add_manifests(served, [manifest])
        except ConverterError as error:
            refusals.append(f"{cut(name)}: {error}")
            continue
        refusals += [f"{cut(name)}: {cut(each.pointer)}: {each.reason}" for each in problems]
    return served


def _add_swagger(served: Served, swagger: Document, seen: set[Any]) -> None:
    from specmux_converters.swagger2.conversion import convert

    there = set(served.group_versions)
    for key, document in convert(swagger).documents.items():
        if key not in there and key not in seen:
            add_document(served, document)
