"""The inputs that a word names on this machine: a file, a folder, ``-``, a git revision, a bundle or a
snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Final, NoReturn

from specmux_aggregator.folders import COMPRESSED, KEY, LAYOUT, SUFFIXES, group_version_of_file, walk_files
from specmux_cache.errors import BundleError
from specmux_converters.document import DEFAULT_LIMITS
from specmux_converters.group_versions import GroupVersion
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.sources.disk.git_files import git_files
from specmux_tools.sources.disk.tool_files import KustomizeFiles, report_skipped
from specmux_tools.sources.input import Input
from specmux_tools.sources.options import GIT, STDIN
from specmux_tools.sources.source import FileRefused

BUNDLE_MAX: Final = 1024 * 1024 * 1024
"""Bytes of all documents of a bundle or a snapshot, unpacked."""
_ZIP: Final = b"PK\x03\x04"
"""A bundle's first bytes."""


@dataclass(frozen=True, slots=True)
class FileKind:
    """The files below a folder that a command wants, by their names."""

    noun: str
    suffixes: tuple[str, ...]
    may_be_compressed: bool = True

    def has(self, name: str) -> bool:
        return (name.removesuffix(COMPRESSED) if self.may_be_compressed else name).endswith(self.suffixes)

    @property
    def none_found(self) -> str:
        *most, last = self.suffixes
        return f"no {self.noun} in it: no file ends in {', '.join(most)} or {last}"


DOCUMENTS: Final = FileKind("document", SUFFIXES)
MANIFESTS: Final = FileKind("manifest", (".yaml", ".yml", ".json", ".cbor"), may_be_compressed=False)


class NotInRevision(FileRefused):
    """A revision of git does not have the path."""


def inputs_at(word: str, kind: FileKind = DOCUMENTS) -> Iterator[Input]:
    """The inputs, those of a folder or a revision by their names. Those of a folder are read when they are
    asked for, a file that is named at once: it may be a pipe. Raises FileRefused."""
    path = Path(word)
    if word.startswith(GIT):
        yield from _inputs_of_revision(word, kind)
    elif word.startswith(LAYOUT):
        yield from _inputs_of_layout(word)
    elif path.is_dir():
        inputs = list(inputs_below(path, kind))
        if not inputs:
            raise FileRefused(path, kind.none_found)
        yield from inputs
    elif path != STDIN and not path.exists():
        raise FileRefused(path, "no such file or folder")
    else:
        found = Input.at(path).load()
        yield from _inputs_of_bundle(path) if found.read().startswith(_ZIP) else (found,)


def _refuse_folder(error: OSError) -> NoReturn:
    """An unreadable folder is an error: it may contain documents."""
    raise FileRefused(error.filename, error.strerror or "cannot be read") from error


def inputs_below(
    folder: Path, kind: FileKind = DOCUMENTS, *, refuse: Callable[[OSError], None] = _refuse_folder
) -> Iterator[Input]:
    """``refuse`` is called for a folder that cannot be read."""
    for path in walk_files(folder, kind.has, refuse=refuse):
        relative = path.relative_to(folder).as_posix()
        yield Input(str(path), path, group_version=group_version_of_file(relative), relative=relative)


def is_packed(path: Path) -> bool:
    """Whether it is a revision of git, a bundle or a snapshot, and no document of its own."""
    if str(path).startswith((GIT, LAYOUT)):
        return True
    try:
        with path.open("rb") as file:
            return file.read(len(_ZIP)) == _ZIP
    except OSError:
        return False


def without_kustomize(inputs: Iterable[Input]) -> list[Input]:
    """The inputs that are not kustomize's, in memory; one line names the others. Raises FileRefused."""
    loaded = [each.load() for each in inputs]
    found = KustomizeFiles(loaded)
    skipped = {number for number, each in enumerate(loaded) if each.document is None and found.has(each)}
    report_skipped(loaded[number].name for number in skipped)
    return [each for number, each in enumerate(loaded) if number not in skipped]


def _inputs_of_revision(word: str, kind: FileKind) -> Iterator[Input]:
    files = git_files(word)
    if files is None:
        raise NotInRevision(word, "the revision has no such path")
    for name, data in files.items():
        relative = "" if name == word else name
        if not relative or kind.has(name):
            key = group_version_of_file(relative)
            yield Input(name, data=data, group_version=key, relative=relative)


def _inputs_of_bundle(path: Path) -> Iterator[Input]:
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
        yield Input(f"{path}:{name}", data=body, group_version=GroupVersion(name), relative=name)


def _inputs_of_layout(word: str) -> Iterator[Input]:
    from specmux_aggregator.backend_sources.oci_layout import Layout  # few commands read one

    layout, left = Layout(word), BUNDLE_MAX
    for each in layout.documents():
        data = layout.read(each)
        left -= len(data)
        if left < 0:
            raise FileRefused(word, f"its documents have more than {BUNDLE_MAX} bytes")
        yield Input(f"{word}/{each.name}", data=data, group_version=each.group_version, relative=each.name)
