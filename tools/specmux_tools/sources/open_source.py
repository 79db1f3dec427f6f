"""From words and options to an open source, for commands that ask for single kinds, and to the inputs of
whole documents. What is needed is imported here, when it is needed."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from specmux_aggregator.console import warn, write_note
from specmux_aggregator.errors import NoSource, SpecmuxError
from specmux_aggregator.exits import UnreadableInput
from specmux_aggregator.folders import LAYOUT, is_layout
from specmux_tools.sources.options import CONTEXT, GIT, KUBERNETES, STDIN, SourceOptions, is_url, release_of

if TYPE_CHECKING:  # the types bring the converters with them, which --help does not need
    from specmux_converters.group_versions import GroupVersion
    from specmux_tools.sources.input import Input
    from specmux_tools.sources.source import Source, UnreadSource

_ROOT_PATHS: Final = ("/openapi/v3/", "/openapi/v2")
WORDS: Final = "nor http(s)://, git:REV:PATH, oci:PATH, context:NAME or kubernetes:1.N"
NAMED_MAX: Final = 20
"""Unusable files that are named; more are counted."""


@contextmanager
def open_documents(options: SourceOptions, *, is_published: bool = False) -> Iterator[Source]:
    """The source while it is open; ``is_published``: as ``FileSource`` has it. Raises SpecmuxError where it
    cannot be used at all."""
    if not options.names_one:
        from specmux_tools.sources.releases import with_default

        options = with_default(options)
    if options.kubernetes is not None:
        from specmux_tools.sources.releases import ReleaseSource

        yield ReleaseSource(options.kubernetes, options.directory_of_cache)
        return
    if options.is_local:
        from specmux_tools.sources.disk.files import FileSource
        from specmux_tools.sources.listing import inputs_at, is_packed

        named = (*options.directories, *options.files)
        packed = [path for path in named if path != STDIN and is_packed(path)]
        plain = tuple(path for path in options.files if path not in packed)
        folders = tuple(path for path in options.directories if path not in packed)
        others = [each for path in packed for each in inputs_at(str(path))]
        files = FileSource(directories=folders, files=plain, others=others)
        files.where = ", ".join(map(str, named))  # not each file of a snapshot, a revision or a bundle
        files.is_published = is_published
        yield files
        return
    from specmux_tools.sources.remote.servers import open_server

    with open_server(options) as source:
        yield source


def note_missing_descriptions(where: str, options: SourceOptions) -> None:
    """Say on standard error how to get the descriptions of a release, which is packaged without them, unless
    the disk cache has them. ``where``: of a source."""
    if where.startswith(KUBERNETES):
        from specmux_aggregator.built_in_releases import PublishedDocuments

        if not PublishedDocuments(release_of(where), options.directory_of_cache).is_complete:
            write_note(f'without descriptions: "specmux cache fetch {where}" gets them, once')


def report_unread(unread: Sequence[UnreadSource]) -> None:
    """A warning on standard error for each thing that could not be used."""
    for each in unread[:NAMED_MAX]:
        warn(str(each))
    more = len(unread) - NAMED_MAX
    if more > 0:
        warn(f"and {more} more that could not be used")


def load(path: str | os.PathLike[str]) -> Mapping[str, Mapping[str, Any]]:
    """The documents of a folder, a file or a snapshot (oci:PATH) by group-version, as ``validate``,
    ``explain``, ``search`` and ``diff`` take them.

    Swagger 2.0 is converted, and CustomResourceDefinitions are built into documents. Raises SchemasError for
    a file that cannot be read as one of these, and for a folder without any.
    """
    from specmux_tools.errors import SchemasError
    from specmux_tools.sources.disk.files import FileSource
    from specmux_tools.sources.listing import inputs_at

    where = Path(path)
    try:
        if is_layout(where):
            source = FileSource(others=inputs_at(str(where)))
        else:
            source = FileSource(directories=[where]) if where.is_dir() else FileSource(files=[where])
        loaded = source.load()
    except SpecmuxError as error:
        raise SchemasError(str(error)) from error
    if loaded.unread:
        rest = len(loaded.unread) - 1
        raise SchemasError(f"{loaded.unread[0]}{f', and {rest} more' if rest else ''}")
    return {str(name): document for name, document in loaded.documents.documents.items()}


class SourceWord(click.ParamType[str]):
    """A word that names a source. Only a path can be told to be wrong at once."""

    name = "source"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        word = str(value)
        if word.startswith(KUBERNETES):
            try:
                release_of(word)
            except NoSource as error:
                self.fail(str(error), param, ctx)
        if is_path(word) and word != str(STDIN) and not Path(word).exists():
            from specmux_converters.errors import cut

            raise UnreadableInput(
                f"{cut(word)!r} does not exist: no such file or folder, {WORDS}", ctx=ctx, param=param
            )
        return word


def is_path(word: str) -> bool:
    return not is_url(word) and not word.startswith((CONTEXT, GIT, KUBERNETES, LAYOUT))


def inputs_of(
    words: Iterable[str],
    source: SourceOptions,
    *,
    group_versions: Collection[GroupVersion] = (),
    unread: list[UnreadSource] | None = None,
) -> list[Input]:
    """The inputs of the words and of the options; without any, the documents of the server that is meant.

    ``group_versions``: those of a server. ``unread`` takes what a server does not give, which is refused
    where it is None. Raises FileRefused, SpecmuxError.
    """
    named = [*words, *map(str, source.files), *map(str, source.directories)]
    if named.count(str(STDIN)) > 1:
        raise click.UsageError("standard input (-) can be read once")
    if not named:
        return _documents_of(source, group_versions, unread)
    from specmux_tools.sources.input import Input
    from specmux_tools.sources.listing import inputs_at, without_kustomize

    found: list[Input] = []
    for word in named:
        if is_url(word) and is_document_url(word):
            from specmux_tools.sources.remote.fetching import download  # which imports what asks

            found.append(Input(word, data=download(source.at(word))))
        elif is_url(word) or word.startswith((CONTEXT, KUBERNETES)):
            found += _documents_of(source.at(word), group_versions, unread)
        else:
            found += inputs_at(word)
    return without_kustomize(found)


def is_document_url(url: str) -> bool:
    """Whether it names one document, and not a server."""
    from specmux_aggregator.folders import is_document_name

    path = url.partition("?")[0].partition("#")[0]
    return is_document_name(path) or any(part in path for part in _ROOT_PATHS)


def _documents_of(
    source: SourceOptions, group_versions: Collection[GroupVersion], unread: list[UnreadSource] | None
) -> list[Input]:
    from specmux_tools.sources.input import Input
    from specmux_tools.sources.source import FileRefused

    with open_documents(source) as server:
        loaded = server.load([*group_versions] or None)
    if unread is not None:
        unread += loaded.unread
    for each in loaded.unread if unread is None else ():
        raise FileRefused(each.where, each.reason)
    return [
        Input(str(key), document=document, group_version=key, relative=str(key))
        for key, document in sorted(loaded.documents.documents.items())
    ]
