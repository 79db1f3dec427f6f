"""What ``specmux diff`` compares: each word, read into what it serves.

Files are told apart by what they hold. CustomResourceDefinitions are read as manifests, since a document made
of them does not say which versions are deprecated or stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import field
from pathlib import Path, PurePath
from typing import Any, Final

import click

from specmux_aggregator.console import warn
from specmux_aggregator.exits import UnreadableInput
from specmux_aggregator.http.content_codings import BadCoding, TooLarge
from specmux_aggregator.workers.file_names import group_version_of_file
from specmux_converters.counted_nouns import listed
from specmux_converters.crd.manifest import shown_name
from specmux_converters.document import Document
from specmux_converters.errors import ConverterError, NoDocument, cut
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.recognise import DocumentKind, recognise
from specmux_tools.differences import ServedSide, add_document, add_manifests
from specmux_tools.sources import SourceOptions
from specmux_tools.sources.arguments import is_document_url
from specmux_tools.sources.disk.document_files import FileRefused
from specmux_tools.sources.disk.files import unpacked
from specmux_tools.sources.disk.git_files import PREFIX as GIT
from specmux_tools.sources.disk.git_files import git_files
from specmux_tools.sources.disk.kustomize import without_kustomize
from specmux_tools.sources.disk.named_files import given_files
from specmux_tools.sources.options import CONTEXT, KUBERNETES, STDIN, is_url

_HASH: Final = re.compile(r"[0-9A-Fa-f]{32,128}")
_CUT_HASH: Final = re.compile(r"[0-9A-Fa-f]{8,31}…?")
_NOT_COMPARED: Final = "not compared, because it cannot be read: "


@dataclass(frozen=True, slots=True)
class SourceDocument:
    """A document of one side, and the text that it was read from."""

    file: str
    data: bytes
    document: Document
    is_manifest: bool


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison, and what its report has to say of how it was read."""

    served: ServedSide
    notes: tuple[str, ...] = ()
    sources: tuple[SourceDocument, ...] = ()
    """Of files, for the places of changes."""


@dataclass(slots=True)
class _SideDocuments:
    """Documents as they were found: v3 first, then what Swagger 2.0 converts to."""

    documents: list[tuple[str, Document]] = field(default_factory=list)
    swagger: list[tuple[str, Document]] = field(default_factory=list)
    manifests: list[tuple[str, Document]] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    """Files that are no documents, with the reason."""
    unread: list[str] = field(default_factory=list)
    """What may be one and could not be read, with the reason."""


def side_of(
    word: str,
    source: SourceOptions,
    *,
    group_versions: tuple[str, ...],
    state: Path | None = None,
    allows_unread: bool = False,
) -> Side:
    """The side that a word stands for. ``state``: where hashes are looked up. ``allows_unread``: the notes
    name what cannot be read, else it is refused. Raises FileRefused, SpecmuxError, click.BadParameter."""
    if state is not None and len(group_versions) == 1 and is_hash(word):
        from specmux_tools.sources.remote.kept_documents import kept_document

        return Side(kept_document(word, group_versions[0], state))
    if word.startswith((CONTEXT, KUBERNETES)) or is_url(word):
        side = _of_server(word, source, allows_unread=allows_unread)
    elif word.startswith(GIT):
        side = _of_revision(word, allows_unread=allows_unread)
    else:
        side = _of_path(word, allows_unread=allows_unread)
    if group_versions:
        named = side.served.group_versions
        for name in [key for key in named if key not in group_versions]:
            del named[name]
    return side


def served_by(word: str, source: SourceOptions) -> ServedSide:
    """The same, for who has no report: what cannot be read is refused."""
    return side_of(word, source, group_versions=()).served


def is_hash(word: str) -> bool:
    return _HASH.fullmatch(word) is not None and not Path(word).exists()


def refuse_cut_hash(word: str) -> None:
    """Raises click.UsageError."""
    if _CUT_HASH.fullmatch(word) and not Path(word).exists():
        raise click.UsageError(
            f'{word}: the beginning of a hash? "specmux status -o json" shows all of its 128 digits'
        )


def _of_path(word: str, *, allows_unread: bool) -> Side:
    path = Path(word)
    if path != STDIN and not path.exists():
        refuse_cut_hash(word)
        raise UnreadableInput(
            f"{cut(word)}: no such file or folder, "
            "nor http(s)://, git:REV:PATH, context:NAME or kubernetes:1.N"
        )
    files = given_files([path])
    where = "standard input" if path == STDIN else word
    return _of_files({each.name: each.data for each in files}, where=where, allows_unread=allows_unread)


def _of_revision(word: str, *, allows_unread: bool) -> Side:
    """A pull request that adds the first definitions is compared with nothing."""
    files = git_files(word)
    if files is None:
        return Side(ServedSide(), (f"{cut(word)}: the revision has no such path, so this side is empty",))
    folder = word.removeprefix(GIT).partition(":")[2].rstrip("/")
    files = without_kustomize(files, are_on_disk=False)
    named = {_path_of(name, word, folder): data for name, data in files.items()}
    return _of_files(named, where=word, allows_unread=allows_unread)


def _path_of(name: str, word: str, folder: str) -> str:
    """As the file is called from here, which is what annotations name."""
    return folder if name == word else str(PurePath(folder, name))


def _of_server(word: str, source: SourceOptions, *, allows_unread: bool) -> Side:
    if is_url(word) and is_document_url(word):
        from specmux_tools.sources.remote.answers import download

        return _of_files({word: download(source.at(word))}, where=word, allows_unread=allows_unread)
    return side_of_source(source.at(word), allows_unread=allows_unread)


def side_of_source(source: SourceOptions, *, allows_unread: bool = False) -> Side:
    """What a server serves, or files that options name."""
    from specmux_tools.sources import opened

    served = ServedSide()
    with opened(source) as server:
        loaded = server.load()
    if loaded.unread and not allows_unread:
        # A document that is missing would be told as a group-version that is gone.
        raise FileRefused(loaded.unread[0].where, loaded.unread[0].reason)
    for document in loaded.documents.documents.values():
        add_document(served, document)
    return Side(served, tuple(f"{_NOT_COMPARED}{each.where}: {each.reason}" for each in loaded.unread))


def _of_files(files: Mapping[str, bytes], *, where: str, allows_unread: bool) -> Side:
    """Files that are no documents are told and skipped; there has to be one that is."""
    read = _SideDocuments()
    for name, data in files.items():
        _recognise(name, data, read, is_only=len(files) == 1)
    served = _served(read)
    if read.unread and not allows_unread:
        raise FileRefused(where if len(files) > 1 else "", _refusal(read.unread, len(files)))
    if not served.group_versions and not served.stored_versions:
        raise FileRefused(where, "; ".join([*read.unread, *read.others][:3]) or "nothing in it is served")
    for other in read.others:
        warn(other)
    kinds = ((read.documents, False), (read.manifests, True))
    sources = tuple(
        SourceDocument(name, files[name], document, is_manifest)
        for found, is_manifest in kinds
        for name, document in found
    )
    return Side(served, tuple(f"{_NOT_COMPARED}{each}" for each in read.unread), sources)


def _refusal(unread: list[str], files: int) -> str:
    shown = listed(unread, 3, separator="; ")
    if files == 1:
        return shown
    return f"not all of it can be read: {shown}. Correct it, or pass --allow-unread to compare the rest"


def _recognise(name: str, data: bytes, read: _SideDocuments, *, is_only: bool) -> None:
    try:
        found = recognise(unpacked(data))
    except NoDocument as error:
        read.others.append(str(error) if is_only else f"{cut(name)}: {error}")
        return
    except (ConverterError, BadCoding, TooLarge) as error:
        read.unread.append(f"{cut(name)}: {error}")
        return
    into = {
        DocumentKind.OPENAPI_3: read.documents,
        DocumentKind.SWAGGER_2: read.swagger,
        DocumentKind.CRDS: read.manifests,
    }
    into[found.kind].extend((name, document) for document in found.documents)


def _served(read: _SideDocuments) -> ServedSide:
    served = ServedSide()
    seen = set()
    for name, document in read.documents:
        add_document(served, document)
        seen.add(group_version_of_file(name))
    for _, swagger in read.swagger:
        _add_swagger(served, swagger, seen)
    first: dict[Any, tuple[str, Document]] = {}
    for name, manifest in read.manifests:
        key = shown_name(manifest)
        if key in first:
            if first[key][1].get("spec") != manifest.get("spec"):
                other = cut(first[key][0])
                read.unread.append(
                    f"{cut(name)}: {key} is defined otherwise in {other}, and one of them counts"
                )
            continue
        first[key] = name, manifest
        try:
            problems: Iterable[Any] = add_manifests(served, [manifest])
        except ConverterError as error:
            read.unread.append(f"{cut(name)}: {error}")
            continue
        read.unread += [f"{cut(name)}: {cut(each.pointer)}: {each.reason}" for each in problems]
    return served


def _add_swagger(served: ServedSide, swagger: Document, seen: set[Any]) -> None:
    from specmux_converters.from_swagger2.conversion import convert

    there = set(served.group_versions)
    for key, document in convert(swagger).documents.items():
        if key not in there and key not in seen:
            add_document(served, document)
