"""Files as they were named: a file, a folder, standard input, a revision of git, a bundle of the cache."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from pathlib import Path
from typing import Final

from specmux_aggregator.workers.file_names import KEY, group_version_of_file
from specmux_cache.errors import BundleError
from specmux_converters.document import DEFAULT_LIMITS, Document, DocumentKind
from specmux_converters.group_versions import GroupVersion
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.recognise import RecognisedInput, recognise
from specmux_tools.sources.disk.document_files import FileRefused, document_files, read_file
from specmux_tools.sources.disk.files import ZIP
from specmux_tools.sources.disk.git_files import PREFIX as GIT
from specmux_tools.sources.disk.git_files import git_files
from specmux_tools.sources.disk.kustomize import without_kustomize
from specmux_tools.sources.options import STDIN

BUNDLE_MAX: Final = 1024 * 1024 * 1024
"""Bytes of all documents of a bundle, unpacked."""


@dataclass(frozen=True, slots=True)
class GivenFile:
    """A document, or a file of several, as a user finds it."""

    name: str
    """For messages."""
    data: bytes = field(repr=False)
    group_version: GroupVersion | None = None
    """The one that its name below a folder spells, or its server says."""
    relative: str = ""
    """Its path below the folder that was named."""
    document: Document | None = field(default=None, repr=False, compare=False)
    """OpenAPI v3 of a server, which is parsed already."""

    def recognised(self) -> RecognisedInput:
        """Raises ConverterError."""
        if self.document is not None:
            return RecognisedInput(DocumentKind.OPENAPI_3, (self.document,), ())
        return recognise(self.data)


def given_files(paths: Iterable[Path | str]) -> list[GivenFile]:
    """Files as they were named, ``-`` for standard input; documents below folders, of git revisions, in
    bundles. Raises FileRefused."""
    return [file for path in paths for file in files_of_path(str(path))]


def files_of_path(word: str) -> Iterator[GivenFile]:
    path = Path(word)
    if word.startswith(GIT):
        yield from _of_revision(word)
    elif path == STDIN:
        yield GivenFile("standard input", read_file(path))
    elif path.is_dir():
        for name, data in without_kustomize(
            {str(each): read_file(each) for each in document_files(path)}
        ).items():
            relative = Path(name).relative_to(path).as_posix()
            yield GivenFile(name, data, group_version_of_file(relative), relative)
    else:
        data = read_file(path)
        if data.startswith(ZIP):
            yield from _of_bundle(path)
        elif without_kustomize({word: data}):
            yield GivenFile(word, data)


def _of_revision(word: str) -> Iterator[GivenFile]:
    files = git_files(word)
    if files is None:
        raise FileRefused(word, "the revision has no such path")
    for name, data in without_kustomize(files, are_on_disk=False).items():
        relative = "" if name == word else name
        yield GivenFile(name, data, group_version_of_file(relative), relative)


def _of_bundle(path: Path) -> Iterator[GivenFile]:
    """One document of each group-version: JSON where it is there, which every reader reads."""
    from specmux_cache.reading.bundle import read_bundle  # which imports an event loop

    try:
        packed = read_bundle(path, max_body_bytes=DEFAULT_LIMITS.max_bytes, max_bytes=BUNDLE_MAX)
    except BundleError as error:
        raise FileRefused(error, "") from error
    best: dict[str, bytes] = {}
    for entry in packed.entries:
        name = entry.key.group_version
        if KEY.fullmatch(name) and (name not in best or "json" in entry.key.media_type):
            best[name] = entry.body
    if not best:
        raise FileRefused(path, "a bundle without documents")
    for name, body in sorted(best.items()):
        yield GivenFile(f"{path}:{name}", body, GroupVersion(name), name)
