"""Documents in files: OpenAPI v3, Swagger 2.0 and CustomResourceDefinitions, told apart by what they hold.

Of several that hold one group-version the first counts, v3 before what was converted before what was built of
manifests; manifests are built all together, since a group's may lie in several files.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection, Iterable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Final

from specmux_aggregator.errors import SourceError
from specmux_aggregator.folders import LAYOUT
from specmux_converters.document import Document, is_of_custom_resources
from specmux_converters.errors import ConverterError, cut
from specmux_converters.group_versions import GroupVersion, group_version_of, split
from specmux_converters.json_values import mapping
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.recognise import DocumentKind
from specmux_converters.references import schemas_of
from specmux_converters.resources import ResourceNames, Resources
from specmux_converters.synthesis import names_of, resources_of
from specmux_tools.kinds import DocumentSet
from specmux_tools.sources.disk.tool_files import KustomizeFiles, report_skipped
from specmux_tools.sources.input import Input
from specmux_tools.sources.listing import DOCUMENTS, inputs_below
from specmux_tools.sources.options import STDIN
from specmux_tools.sources.source import FileRefused, LoadedDocuments, UnreadSource, digest_of

SETTLED: Final = 2.0
"""Seconds: file systems tell times as coarsely."""
_NO_KEY: Final = (
    "its paths are of no group-version; name the file as its group-version, such as apis/apps/v1.json"
)


@dataclass(frozen=True, slots=True)
class _Contents:
    """The contents of one file. ``documents`` are v3 as they lie there, ``converted`` from Swagger 2.0."""

    documents: Mapping[GroupVersion, Document] = field(default_factory=dict)
    converted: Mapping[GroupVersion, Document] = field(default_factory=dict)
    manifests: tuple[Document, ...] = ()
    unread: UnreadSource | None = None
    is_skipped: bool = False
    """Whether it is kustomize's."""


class FileSource:
    """Some files, each read once and only when a document that it may hold is asked for."""

    def __init__(
        self, *, directories: Iterable[Path] = (), files: Iterable[Path] = (), others: Iterable[Input] = ()
    ) -> None:
        """All documents below folders, single files, and ``others``, which are read already.

        Raises FileRefused where there is no file.
        """
        self._directories, self._files, self._others = tuple(directories), tuple(files), tuple(others)
        named = ", ".join(map(str, (*self._directories, *self._files)))
        self.where = ", ".join(filter(None, (named, *(each.name for each in self._others))))
        self.is_published = False
        """Whether definitions become what an apiserver publishes, without what commands alone read."""
        self._unlisted: list[UnreadSource] = []

        def refuse(error: OSError) -> None:
            self._unlisted.append(UnreadSource(str(error.filename), error.strerror or "cannot be read"))

        inputs: list[Input] = []
        for folder in self._directories:
            if not folder.is_dir():
                raise FileRefused(folder, "not a folder, or it may not be read")
            inputs += inputs_below(folder, refuse=refuse)
        inputs += [*map(Input.at, self._files), *self._others]
        if not inputs:
            raise FileRefused(named, "; ".join((DOCUMENTS.none_found, *map(str, self._unlisted))))
        self._inputs = tuple(inputs)
        self._contents: dict[str, _Contents] = {}
        self._kustomize = KustomizeFiles(self._inputs)
        self._is_skipping_reported = False
        self._loaded: dict[frozenset[GroupVersion] | None, LoadedDocuments] = {}
        self._state = _state_of(self._inputs)
        """Before anything is read: what is read later may be newer, and is then read once more."""

    def refresh(self) -> FileSource:
        if STDIN in self._files:  # read to its end
            return self
        now = FileSource(directories=self._directories, files=self._files, others=self._others)
        now.is_published = self.is_published
        return self if self._state and now.state() == self._state else now

    @property
    def kept_as(self) -> tuple[str, str] | None:
        paths = "\n".join(str(path.absolute()) for path in (*self._directories, *self._files))
        named = hashlib.sha256(paths.encode("utf-8", "surrogateescape")).hexdigest()
        return (f"files:{named[:32]}", "files") if self._state else None

    def state(self) -> str:
        return self._state

    def hashes(self) -> Mapping[GroupVersion, str]:
        return {key: digest_of(document) for key, document in self.load().documents.documents.items()}

    def group_versions(self) -> tuple[GroupVersion, ...]:
        return tuple(sorted(self.load().documents.documents))

    def load(
        self, group_versions: Collection[GroupVersion] | None = None, *, schemas_only: bool = False
    ) -> LoadedDocuments:
        """Raises SourceError where no file can be used."""
        wanted = None if group_versions is None else frozenset(group_versions)
        if wanted not in self._loaded:
            self._loaded[wanted] = self._load(wanted)
        return self._loaded[wanted]

    def resources(self) -> Mapping[GroupVersion, Resources]:
        names: dict[str, dict[str, ResourceNames]] = {}
        for contents in self._contents_of(None):
            for manifest in contents.manifests:
                if (found := names_of(manifest)) is not None:
                    names.setdefault(str(manifest["spec"].get("group")), {})[found[0]] = found[1]
        return {
            key: resources_of(document, key, names.get(group_and_version[0], {}))
            for key, document in self.load().documents.documents.items()
            if (group_and_version := split(key)) is not None
        }

    def _contents_of(self, wanted: frozenset[GroupVersion] | None) -> list[_Contents]:
        """The contents of files that may hold what is wanted: not of those named as another group-version."""
        contents = []
        for file in self._inputs:
            if wanted is None or file.group_version is None or file.group_version in wanted:
                if file.name not in self._contents:
                    self._contents[file.name] = _read_contents(file, self._kustomize)
                contents.append(self._contents[file.name])
        if not self._is_skipping_reported:
            skipped = [name for name, found in self._contents.items() if found.is_skipped]
            self._is_skipping_reported = bool(skipped)
            report_skipped(skipped)
        return contents

    def _load(self, wanted: frozenset[GroupVersion] | None) -> LoadedDocuments:
        contents = self._contents_of(wanted)
        unread = [*self._unlisted, *(each.unread for each in contents if each.unread)]
        documents: dict[GroupVersion, Document] = {}
        for found in (*(each.documents for each in contents), *(each.converted for each in contents)):
            for key, document in found.items():
                if documents.setdefault(key, document) is not document and split(key) is not None:
                    unread.append(UnreadSource(key, "is in several files; the first counts"))
        manifests = [manifest for each in contents for manifest in each.manifests]
        built = _build_manifests(manifests, unread, is_published=self.is_published) if manifests else {}
        for key, document in built.items():
            there = documents.setdefault(key, document)
            if is_of_custom_resources(there):
                documents[key] = _join_documents(there, document)
            elif there is not document:
                unread.append(UnreadSource(key, "is in a document and in definitions; the document counts"))
        if not documents and wanted is None:
            reasons = "".join(f"\n  {each}" for each in unread[:5])
            layouts = [each for each in self._directories if (each / "oci-layout").is_file()]
            step = f"; it is a snapshot: name it as {LAYOUT}{cut(str(layouts[0]))}" if layouts else ""
            raise SourceError(f"{cut(self.where)}: no document in it can be used{step}{reasons}")
        if wanted is not None:
            documents = {key: document for key, document in documents.items() if key in wanted}
        return LoadedDocuments(DocumentSet(documents), tuple(unread), tuple(manifests))


def _join_documents(first: Document, second: Document) -> Document:
    """One of a group-version and the definitions of others of its kinds: what the first has counts."""
    if first is second:
        return first
    components = {**mapping(second.get("components")), **mapping(first.get("components"))}
    schemas = {**schemas_of(second), **schemas_of(first)}
    paths = {**mapping(second.get("paths")), **mapping(first.get("paths"))}
    return {**first, "paths": paths, "components": {**components, "schemas": schemas}}


def _build_manifests(
    manifests: list[Document], unread: list[UnreadSource], *, is_published: bool
) -> Mapping[GroupVersion, Document]:
    """Imported where there is something to build: it takes as long as all else of a command."""
    from specmux_converters.crd import AS_DEFINED, BUNDLED, build

    built = build(manifests, templates=BUNDLED if is_published else AS_DEFINED)
    unread += [
        UnreadSource(each.crd or "(manifest)", f"{cut(each.pointer) or '/'}: {each.reason}")
        for each in built.problems
    ]
    return built.documents


def _state_of(inputs: Iterable[Input]) -> str:
    """ "" for standard input, for what cannot be looked at, and for a file that changed a moment ago: it may
    change again before its time does."""
    told = hashlib.sha256()
    settled = time.time() - SETTLED
    for file in inputs:
        if file.path is None or file.path == STDIN:
            return ""
        try:
            found = file.path.stat()
        except OSError:
            return ""
        if found.st_mtime > settled:
            return ""
        said = (str(file.path.absolute()), found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        told.update(repr(said).encode("utf-8", "surrogateescape"))
    return told.hexdigest()


def _read_contents(file: Input, kustomize: KustomizeFiles) -> _Contents:
    try:
        file = file.load()
        if file.group_version is None and kustomize.has(file):
            return _Contents(is_skipped=True)
        found = file.recognise()
        match found.kind:
            case DocumentKind.OPENAPI_3:
                keys = [file.group_version] if file.group_version else _keys(found.documents[0])
                if not keys:
                    return _Contents(unread=UnreadSource(file.name, _NO_KEY))
                return _Contents(dict.fromkeys(keys, found.documents[0]))
            case DocumentKind.SWAGGER_2:
                # As long to import as all else of a command takes.
                from specmux_converters.from_swagger2.conversion import convert

                return _Contents(converted=dict(convert(found.documents[0]).documents))
            case DocumentKind.CRDS:
                return _Contents(manifests=found.documents)
    except (FileRefused, ConverterError) as error:
        reason = error.reason if isinstance(error, FileRefused) else str(error)
        return _Contents(unread=UnreadSource(file.name, reason))


def _keys(document: Document) -> list[GroupVersion]:
    """The group-versions whose paths a document has: one, or many where documents were merged."""
    keys = {key for path in document.get("paths") or () if (key := group_version_of(path)) is not None}
    return sorted(key for key in keys if split(key) is not None) or sorted(keys)
