"""From options to an open source. What it needs is imported here, when it is needed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from specmux_aggregator.console import warn, write_note
from specmux_aggregator.errors import SpecmuxError
from specmux_aggregator.folders import is_layout
from specmux_tools.sources.options import KUBERNETES, STDIN, SourceOptions, release_of

if TYPE_CHECKING:  # the types bring the converters with them, which --help does not need
    from specmux_tools.sources.source import Source, UnreadSource

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
