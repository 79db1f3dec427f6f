"""Build the documents of CustomResourceDefinitions; runs in a worker process, like documents.py.

Definitions come from files or a cluster. Unchanged ones are sent only by digest; a worker that does not have
one asks for it. Each group is built separately, and only when its manifests change, so a change costs only
its own group.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from specmux_aggregator.http.content_codings import BadCoding, TooLarge, decoded, encoded
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.observation import Hash, Offer, Provenance
from specmux_aggregator.workers.built import BuiltDocument, Owned
from specmux_aggregator.workers.file_names import COMPRESSED
from specmux_converters.counted_nouns import first_of
from specmux_converters.crd import BUNDLED, CRDBuild, CRDMemo, Problem, Templates, build
from specmux_converters.document import Document, Limits, content_hash, parse
from specmux_converters.errors import ConverterError, cut
from specmux_converters.group_versions import GroupVersion
from specmux_converters.json_values import mapping, text
from specmux_converters.losses import Grade, Loss
from specmux_converters.recognise import DocumentKind, recognise
from specmux_converters.resources import Resources
from specmux_converters.synthesis import named, names_of, synthesise

PROBLEMS_NAMED = 50
"""Problems of one directory that are named; further ones are counted."""


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """A file of any content. ``data`` is None if the worker has received this digest before."""

    name: str
    digest: bytes
    data: bytes | None


@dataclass(frozen=True, slots=True)
class ManifestObject:
    """A definition in a cluster; ``data`` is its JSON, serialized here."""

    name: str
    digest: bytes
    data: bytes | None


Manifest: TypeAlias = ManifestFile | ManifestObject


@dataclass(frozen=True, slots=True)
class Missing:
    """Names of manifests that the worker does not have; send them whole."""

    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class CRDsBuilt:
    """``seconds``: duration for each newly built group-version, from manifests to bytes."""

    documents: tuple[BuiltDocument, ...]
    notes: tuple[str, ...]
    seconds: Mapping[GroupVersion, float]
    resources: Mapping[GroupVersion, Resources]
    """The resources of each document for discovery, except groups that have not changed since the documents
    the caller has."""


@dataclass(frozen=True, slots=True)
class _Group:
    """The last build of one API group."""

    manifests: tuple[Document, ...]
    owned: Owned
    templates: Templates
    problems: tuple[str, ...]
    group_versions: tuple[GroupVersion, ...]

    def is_of(self, manifests: list[Document], owned: Owned, templates: Templates) -> bool:
        """Whether building it again would give the same result. Unchanged files hold the identical
        objects."""
        return (
            self.owned == owned
            and self.templates == templates
            and len(self.manifests) == len(manifests)
            and all(one is other for one, other in zip(self.manifests, manifests, strict=True))
        )


@dataclass(frozen=True, slots=True)
class _FileContents:
    """The content of one file. ``fault``: why it yields nothing although it looks like a manifest."""

    manifests: tuple[Document, ...]
    fault: str | None = None
    lost: str | None = None
    """Duplicate keys dropped while parsing: the first, and the number of others."""


@dataclass(slots=True)
class DirectoryMemo:
    """What a worker remembers of one directory."""

    files: dict[bytes, _FileContents] = field(default_factory=dict)
    good: dict[str, tuple[Document, ...]] = field(default_factory=dict)
    """The last valid content of each file, so that a faulty edit removes nothing."""
    groups: dict[str, CRDMemo] = field(default_factory=dict)
    built: dict[str, _Group] = field(default_factory=dict)
    offers: dict[GroupVersion, tuple[str, Offer]] = field(default_factory=dict)
    """The offer made for a fingerprint."""
    resources: dict[GroupVersion, tuple[str, Resources]] = field(default_factory=dict)
    """The resources extracted from the document of a fingerprint; without names that only manifests have."""


def build_crds(
    memo: DirectoryMemo,
    files: tuple[Manifest, ...],
    *,
    owned: Owned,
    held: Mapping[GroupVersion, Hash],
    limits: Limits,
    templates: Templates = BUNDLED,
) -> CRDsBuilt | Missing:
    """The documents of all manifests in ``files``, which are in order of precedence."""
    missing = {file.name for file in files if file.data is None and file.digest not in memo.files}
    if missing:
        return Missing(frozenset(missing))
    known = memo.files
    memo.files = {file.digest: known.get(file.digest) or _read(file, limits) for file in files}
    groups, notes = _grouped(memo, files)
    memo.groups = {group: memo.groups.get(group) or CRDMemo() for group in groups}
    documents: list[BuiltDocument] = []
    seconds: dict[GroupVersion, float] = {}
    resources: dict[GroupVersion, Resources] = {}
    built: dict[str, _Group] = {}
    for group, manifests in sorted(groups.items()):
        last = memo.built.get(group)
        if last is not None and last.is_of(manifests, owned, templates) and _holds(held, memo, last):
            documents += [BuiltDocument(key, memo.offers[key][1], None) for key in last.group_versions]
        else:
            began = time.perf_counter()
            owns = None if owned is None else owned.__contains__
            made = build(manifests, owns=owns, memo=memo.groups[group], limits=limits, templates=templates)
            shared = (time.perf_counter() - began) / max(1, len(made.documents))
            for document, taken in _built(memo, made, held):
                documents.append(document)
                if taken is not None:
                    seconds[document.group_version] = shared + taken
            problems = tuple(map(_told, made.problems))
            names = dict(filter(None, map(names_of, manifests)))
            for group_version in made.fingerprints:
                resources[group_version] = named(_resources(memo, made, group_version), names)
            last = _Group(tuple(manifests), owned, templates, problems, tuple(made.fingerprints))
        built[group] = last
        notes += last.problems
    memo.offers = {item.group_version: memo.offers[item.group_version] for item in documents}
    memo.resources = {item.group_version: memo.resources[item.group_version] for item in documents}
    # Last, so that a build after a failed one repeats its work.
    memo.built = built
    shown = first_of(notes, PROBLEMS_NAMED, "problems")
    return CRDsBuilt(tuple(documents), tuple(shown), seconds, resources)


def _grouped(memo: DirectoryMemo, files: tuple[Manifest, ...]) -> tuple[dict[str, list[Document]], list[str]]:
    """The manifests of each API group, and messages about faulty files."""
    notes: list[str] = []
    good: dict[str, tuple[Document, ...]] = {}
    groups: dict[str, list[Document]] = {}
    for file in files:
        read = memo.files[file.digest]
        if read.fault is not None:
            notes.append(f"{cut(file.name)}: {read.fault}")
        if read.lost is not None:
            notes.append(f"{cut(file.name)}: {read.lost}")
        good[file.name] = read.manifests if read.fault is None else memo.good.get(file.name, ())
        for manifest in good[file.name]:
            groups.setdefault(_group_of(manifest), []).append(manifest)
    memo.good = good
    return groups, notes


def _holds(held: Mapping[GroupVersion, Hash], memo: DirectoryMemo, group: _Group) -> bool:
    """Whether the caller has every document of the group."""
    return all(held.get(key) == memo.offers[key][1].hash for key in group.group_versions)


def _built(
    memo: DirectoryMemo, made: CRDBuild, held: Mapping[GroupVersion, Hash]
) -> Iterator[tuple[BuiltDocument, float | None]]:
    """The documents of one group, and the seconds that each took; None for one that was made before."""
    for group_version, fingerprint in made.fingerprints.items():
        known = memo.offers.get(group_version)
        if known is not None and known[0] == fingerprint and held.get(group_version) == known[1].hash:
            yield BuiltDocument(group_version, known[1], None), None
            continue
        began = time.perf_counter()
        json = made.json(group_version)
        offer = Offer(hash=Hash(content_hash(json)), provenance=Provenance.CRD, size=len(json))
        memo.offers[group_version] = (fingerprint, offer)
        is_held = held.get(group_version) == offer.hash
        body = None if is_held else encoded(json, Coding.GZIP)
        yield BuiltDocument(group_version, offer, body), time.perf_counter() - began


def _told(problem: Problem) -> str:
    place = f" at {cut(problem.pointer)}" if problem.pointer else ""
    return f"{cut(problem.crd)}: {problem.construct}{place}: {problem.reason}"


def _resources(memo: DirectoryMemo, made: CRDBuild, group_version: GroupVersion) -> Resources:
    fingerprint = made.fingerprints[group_version]
    known = memo.resources.get(group_version)
    if known is None or known[0] != fingerprint:
        known = (fingerprint, synthesise(made.documents[group_version], group_version))
        memo.resources[group_version] = known
    return known[1]


def _read(manifest: Manifest, limits: Limits) -> _FileContents:
    data = manifest.data or b""
    match manifest:
        case ManifestFile(name):
            return _read_file(name, data, limits)
        case ManifestObject():
            try:
                return _FileContents((parse(data, limits=limits),))
            except ConverterError as error:
                return _FileContents((), str(error))


def _read_file(name: str, data: bytes, limits: Limits) -> _FileContents:
    coding = Coding.GZIP if name.endswith(COMPRESSED) else Coding.IDENTITY
    try:
        plain = decoded(data, coding, max_bytes=limits.max_bytes)
    except (BadCoding, TooLarge) as error:
        return _FileContents((), str(error))
    try:
        found = recognise(plain, limits=limits)
    except ConverterError as error:
        # A kustomization beside the manifests is ignored; a manifest that cannot be parsed is a fault.
        return _FileContents((), str(error) if b"CustomResourceDefinition" in plain else None)
    return (
        _FileContents(found.documents, lost=_lost(found.losses))
        if found.kind is DocumentKind.CRDS
        else _FileContents(())
    )


def _lost(losses: Sequence[Loss]) -> str | None:
    lost = [loss for loss in losses if loss.grade is Grade.LOSS]
    if not lost:
        return None
    more = f", and {len(lost) - 1} more" if len(lost) > 1 else ""
    return f"{cut(lost[0].pointer)}: {lost[0].construct}: {lost[0].reason}{more}"


def _group_of(manifest: Document) -> str:
    """The API group, which determines everything that manifests share; "" if the manifest has none."""
    return text(mapping(manifest.get("spec")).get("group"))
