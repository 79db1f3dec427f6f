"""The inputs that words and options name: of folders, git revisions, bundles, snapshots, URLs, and servers.

The one way in for commands that read whole documents; those that ask for single kinds open a Source.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any, Final

import click

from specmux_aggregator.errors import NoSource
from specmux_aggregator.exits import UnreadableInput
from specmux_aggregator.folders import LAYOUT
from specmux_aggregator.workers.file_names import is_document_name
from specmux_converters.errors import cut
from specmux_converters.group_versions import GroupVersion
from specmux_tools.sources.disk.git_files import PREFIX as GIT
from specmux_tools.sources.input import Input
from specmux_tools.sources.listing import inputs_at, without_kustomize
from specmux_tools.sources.open_source import open_documents
from specmux_tools.sources.options import CONTEXT, KUBERNETES, STDIN, SourceOptions, is_url, release_of
from specmux_tools.sources.source import FileRefused, UnreadSource

_ROOT_PATHS: Final = ("/openapi/v3/", "/openapi/v2")
WORDS: Final = "nor http(s)://, git:REV:PATH, oci:PATH, context:NAME or kubernetes:1.N"


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
    path = url.partition("?")[0].partition("#")[0]
    return is_document_name(path) or any(part in path for part in _ROOT_PATHS)


def _documents_of(
    source: SourceOptions, group_versions: Collection[GroupVersion], unread: list[UnreadSource] | None
) -> list[Input]:
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
