"""The sides of ``specmux diff``: each word, read into what it serves.

Files are told apart by what they hold. CustomResourceDefinitions are read as manifests, since a document made
of them does not say which versions are deprecated or stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import field, replace
from pathlib import Path, PurePath
from typing import Any, Final

import click

from specmux_aggregator.console import warn
from specmux_aggregator.exits import UnreadableInput
from specmux_aggregator.folders import group_version_of_file
from specmux_converters.counted_nouns import list_first
from specmux_converters.crd.manifest import shown_name
from specmux_converters.document import Document
from specmux_converters.errors import ConverterError, NoDocument, cut
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.recognise import DocumentKind
from specmux_tools.differences import ServedSide, add_document, add_manifests
from specmux_tools.sources import SourceOptions
from specmux_tools.sources.input import Input
from specmux_tools.sources.listing import NotInRevision
from specmux_tools.sources.open_source import WORDS, inputs_of, is_document_url, is_path
from specmux_tools.sources.options import CONTEXT, GIT, KUBERNETES, STDIN, is_url
from specmux_tools.sources.source import FileRefused

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
    """The documents of files, for the places of changes."""


@dataclass(slots=True)
class _SideDocuments:
    """Documents as they were found: v3 first, then what Swagger 2.0 converts to."""

    documents: list[SourceDocument] = field(default_factory=list)
    swagger: list[SourceDocument] = field(default_factory=list)
    manifests: list[SourceDocument] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    """Files that are no documents, with the reason."""
    unread: list[str] = field(default_factory=list)
    """Files that may be documents and could not be read, with the reason."""


def side_of(
    word: str,
    source: SourceOptions,
    *,
    group_versions: tuple[str, ...] = (),
    state: Path | None = None,
    allows_unread: bool = False,
) -> Side:
    """The side that a word stands for. ``state``: where hashes are looked up. ``allows_unread``: the notes
    name what cannot be read, else it is refused. Raises FileRefused, SpecmuxError, click.BadParameter."""
    if state is not None and len(group_versions) == 1 and is_hash(word):
        from specmux_tools.sources.remote.kept_documents import kept_document

        return Side(kept_document(word, group_versions[0], state))
    if word.startswith((CONTEXT, KUBERNETES)) or (is_url(word) and not is_document_url(word)):
        side = side_of_source(source.at(word), allows_unread=allows_unread)
    else:
        side = _side_of_files(word, source, allows_unread=allows_unread)
    if group_versions:
        named = side.served.group_versions
        for name in [key for key in named if key not in group_versions]:
            del named[name]
    return side


def is_hash(word: str) -> bool:
    return _HASH.fullmatch(word) is not None and not Path(word).exists()


def refuse_cut_hash(word: str) -> None:
    """Raises click.UsageError."""
    if _CUT_HASH.fullmatch(word) and not Path(word).exists():
        raise click.UsageError(
            f'{word}: the beginning of a hash? "specmux status -o json" shows all of its 128 digits'
        )


def side_of_source(source: SourceOptions, *, allows_unread: bool = False) -> Side:
    """The side of a server, or of files that options name."""
    from specmux_tools.sources import open_documents

    served = ServedSide()
    with open_documents(source) as server:
        loaded = server.load()
    if loaded.unread and not allows_unread:
        # A document that is missing would be told as a group-version that is gone.
        raise FileRefused(loaded.unread[0].where, loaded.unread[0].reason)
    for document in loaded.documents.documents.values():
        add_document(served, document)
    return Side(served, tuple(f"{_NOT_COMPARED}{each.where}: {each.reason}" for each in loaded.unread))


def _side_of_files(word: str, source: SourceOptions, *, allows_unread: bool) -> Side:
    """Files that are no documents are told and skipped; there has to be one that is."""
    if is_path(word) and word != str(STDIN) and not Path(word).exists():
        refuse_cut_hash(word)
        raise UnreadableInput(f"{cut(word)}: no such file or folder, {WORDS}")
    try:
        files = inputs_of([word], replace(source, files=(), directories=()))
    except NotInRevision:  # a pull request that adds the first definitions is compared with nothing
        return Side(ServedSide(), (f"{cut(word)}: the revision has no such path, so this side is empty",))
    read = _SideDocuments()
    for file in files:
        # The name in the working tree of a revision's file, since annotations need it.
        tree, path = word.removeprefix(GIT).partition(":")[2], file.relative
        name = str(PurePath(tree, path)) if word.startswith(GIT) else file.name
        _recognise(file, name, read, is_only=len(files) == 1)
    served = _serve_documents(read)
    where = "standard input" if word == str(STDIN) else word
    if read.unread and not allows_unread:
        shown = list_first(read.unread, 3, separator="; ")
        if len(files) == 1:
            raise FileRefused("", shown)
        step = "Correct it, or pass --allow-unread to compare the rest"
        raise FileRefused(where, f"not all of it can be read: {shown}. {step}")
    if not served.group_versions and not served.stored_versions:
        raise FileRefused(where, "; ".join([*read.unread, *read.others][:3]) or "nothing in it is served")
    for other in read.others:
        warn(other)
    return Side(
        served, tuple(f"{_NOT_COMPARED}{each}" for each in read.unread), (*read.documents, *read.manifests)
    )


def _recognise(file: Input, name: str, read: _SideDocuments, *, is_only: bool) -> None:
    try:
        found = file.recognise()
    except NoDocument as error:
        read.others.append(str(error) if is_only else f"{cut(name)}: {error}")
        return
    except (ConverterError, FileRefused) as error:
        reason = error.reason if isinstance(error, FileRefused) else error
        read.unread.append(f"{cut(name)}: {reason}")
        return
    into = {
        DocumentKind.OPENAPI_3: read.documents,
        DocumentKind.SWAGGER_2: read.swagger,
        DocumentKind.CRDS: read.manifests,
    }
    is_manifest = found.kind is DocumentKind.CRDS
    data = file.read()
    into[found.kind].extend(SourceDocument(name, data, each, is_manifest) for each in found.documents)


def _serve_documents(read: _SideDocuments) -> ServedSide:
    served = ServedSide()
    seen = set()
    for each in read.documents:
        add_document(served, each.document)
        seen.add(group_version_of_file(each.file))
    for each in read.swagger:
        from specmux_converters.from_swagger2.conversion import convert  # takes as long to import as all else

        there = seen | served.group_versions.keys()
        for group_version, document in convert(each.document).documents.items():
            if group_version not in there:
                add_document(served, document)
    first: dict[Any, SourceDocument] = {}
    for each in read.manifests:
        name, key = each.file, shown_name(each.document)
        if key in first:
            if first[key].document.get("spec") != each.document.get("spec"):
                other = cut(first[key].file)
                read.unread.append(
                    f"{cut(name)}: {key} is defined otherwise in {other}, and one of them counts"
                )
            continue
        first[key] = each
        try:
            problems: Iterable[Any] = add_manifests(served, [each.document])
        except ConverterError as error:
            read.unread.append(f"{cut(name)}: {error}")
            continue
        read.unread += [f"{cut(name)}: {cut(each.pointer)}: {each.reason}" for each in problems]
    return served
