"""A release's documents with descriptions, as Kubernetes publishes them: into the disk cache.

Their names follow from the packaged documents, so nothing is listed. What is not equal to the packaged one,
but for descriptions and enums, is refused: it is another version's, or not Kubernetes'.
"""

from __future__ import annotations

import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Final, TypeAlias

import orjson

from specmux_aggregator.built_in_releases import PublishedDocuments, built_in_releases, published_key
from specmux_aggregator.errors import NoSource, SourceError, SourceUnreachable
from specmux_aggregator.folders import group_version_of_file, is_document_name, walk_files
from specmux_aggregator.http.content_codings import BadCoding, TooLarge
from specmux_cache.access.server_access import ClientAccess
from specmux_cache.store.disk_store import DiskStore
from specmux_converters.counted_nouns import counted
from specmux_converters.document import DEFAULT_LIMITS, parse
from specmux_converters.errors import ConverterError, cut
from specmux_converters.group_versions import GroupVersion
from specmux_converters.release_documents import add_enums, facts_of
from specmux_tools.sources.input import read_bytes, unpack
from specmux_tools.sources.remote.fetching import ServerConnection
from specmux_tools.sources.source import FileRefused

FOLDER: Final = "api/openapi-spec/v3"
"""In the sources of Kubernetes."""
PUBLISHED: Final = f"https://raw.githubusercontent.com/kubernetes/kubernetes/{{version}}/{FOLDER}"
_Found: TypeAlias = "tuple[GroupVersion, Callable[[], bytes], str]"
"""A document, its bytes, and what it is for messages."""
_DAMAGED: Final = (
    zipfile.BadZipFile,
    tarfile.TarError,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    NotImplementedError,
    RuntimeError,
)


class DocumentKeeper:
    """Keeps the documents of one release that the store does not have. ``present`` were there before; then
    come ``fetched``."""

    def __init__(self, release: str, store: DiskStore) -> None:
        known = set(built_in_releases().group_versions(release))
        self._release = release
        self._store = store
        self.present = PublishedDocuments(release, store.directory).group_versions
        self.missing = known - self.present
        self.fetched: list[GroupVersion] = []

    def keep(self, key: GroupVersion, data: bytes, where: str) -> None:
        """Raises FileRefused for what is not the document, StoreError."""
        try:
            body = unpack(data)
            document = parse(body)
        except (BadCoding, TooLarge, ConverterError) as error:
            raise FileRefused(where, error) from error
        facts = built_in_releases().document(self._release, key)
        whole = add_enums(document, facts)
        if facts_of(whole) != facts:
            module, _ = built_in_releases().source_of(self._release)
            raise FileRefused(where, f"it is not the {key} of {module}, which specmux knows")
        self._store.put(published_key(self._release, key), orjson.dumps(whole), metadata={})
        self.missing.discard(key)
        self.fetched.append(key)

    def finish(self, where: str) -> None:
        """Raises FileRefused where documents are missing."""
        if self.missing:
            module, _ = built_in_releases().source_of(self._release)
            first = min(self.missing)
            raise FileRefused(
                where,
                f"{counted(len(self.missing), 'document')} of {module} missing, such as "
                f"{FOLDER}/{_file_name(first)}",
            )


def published_url(release: str, pattern: str = PUBLISHED) -> str:
    """The URL of the folder; ``{version}`` in the pattern stands for Kubernetes' version."""
    module, _ = built_in_releases().source_of(release)
    return pattern.replace("{version}", module.rpartition("@")[2])


def download_documents(access: ClientAccess, keeper: DocumentKeeper, *, timeout: float) -> None:
    """One after the other, on one connection; what came before a failure is kept. Raises SourceUnreachable,
    FileRefused, StoreError."""
    with ServerConnection(access, most=DEFAULT_LIMITS.max_bytes, timeout=timeout) as connection:
        for key in sorted(keeper.missing):
            path = f"/{_file_name(key)}"
            answer = connection.fetch(path)
            if answer.status != 200:
                raise SourceUnreachable(
                    f"{access.url}{path}: answered {answer.status}; "
                    "--from names a mirror, a folder or an archive of the sources"
                )
            keeper.keep(key, answer.body, f"{access.url}{path}")
    keeper.finish(access.url)


def read_documents(path: Path, keeper: DocumentKeeper) -> None:
    """Read a folder or an archive. Raises SourceError, FileRefused, StoreError."""
    if not path.exists():
        raise NoSource(f"{cut(str(path))}: no such file or folder")
    try:
        for key, data, where in _of_folder(path) if path.is_dir() else _of_archive(path):
            if key in keeper.missing:
                keeper.keep(key, data(), where)
    except OSError as error:
        raise SourceError(f"{cut(str(path))}: {error.strerror or 'it cannot be read'}") from error
    except _DAMAGED as error:
        raise FileRefused(path, "no zip or tar, or a damaged one") from error
    keeper.finish(str(path))


def _of_folder(folder: Path) -> Iterator[_Found]:
    inner = folder / FOLDER
    base = inner if inner.is_dir() else folder
    for path in walk_files(base, is_document_name):
        key = group_version_of_file(path.relative_to(base).as_posix())
        if key is not None:
            yield key, partial(read_bytes, path), str(path)


def _of_archive(path: Path) -> Iterator[_Found]:
    """The documents of a zip, as the Go module proxy has it, or a tar. Names are never used as paths."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if (key := _key_of(name)) is not None:
                    yield key, partial(_read_member, partial(archive.open, name)), f"{path}: {name}"
        return
    with tarfile.open(path, "r|*") as archive:
        for member in archive:
            if member.isfile() and (key := _key_of(member.name)) is not None:
                read = partial(_read_member, partial(archive.extractfile, member))
                yield key, read, f"{path}: {member.name}"


def _read_member(opened: Callable[[], IO[bytes] | None]) -> bytes:
    """Raises TooLarge through who unpacks it: it is cut after one byte more than a document may have."""
    file = opened()
    assert file is not None  # a member that is a file has one
    with file:
        return file.read(DEFAULT_LIMITS.max_bytes + 1)


def _key_of(name: str) -> GroupVersion | None:
    _, folder, file = name.rpartition(f"{FOLDER}/")
    return group_version_of_file(file) if folder else None


def _file_name(key: GroupVersion) -> str:
    return f"{key.replace('/', '__')}_openapi.json"
