"""Read the manifests of files, and build the documents of CustomResourceDefinitions; runs in a worker
process, like documents.py.

Everything that manifests share lies within their API group, so a group is built by itself, from texts that
come with the call. A worker remembers the last groups within MEMO_BYTES, so that a change costs only its
definition; everything else it forgets, and the caller decides what to build again.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from specmux_aggregator.folders import COMPRESSED
from specmux_aggregator.http.content_codings import BadCoding, TooLarge, decode_body, encode_body
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.observation import Hash, Offer, Provenance
from specmux_aggregator.workers.built import BuiltDocument, GroupBuilt, ManifestObject, Owned, manifest_object
from specmux_converters.crd import BUNDLED, CRDBuild, CRDMemo, Problem, Templates, build
from specmux_converters.document import Document, Limits, content_hash, parse
from specmux_converters.errors import ConverterError, cut
from specmux_converters.group_versions import GroupVersion
from specmux_converters.losses import Grade, Loss
from specmux_converters.memory import ByteBounded
from specmux_converters.recognise import DocumentKind, recognise
from specmux_converters.resources import Resources
from specmux_converters.synthesis import name_resources, names_of, synthesise

MEMO_BYTES: Final = 6 * 1024 * 1024
"""JSON of the manifests whose documents a worker remembers; that takes twelve times the memory."""


@dataclass(frozen=True, slots=True)
class FileManifests:
    """The manifests of one file. ``fault``: why it yields nothing although it looks like a manifest."""

    manifests: tuple[ManifestObject, ...]
    fault: str | None = None
    lost: str | None = None
    """Duplicate keys dropped while parsing: the first, and the number of others."""


@dataclass(slots=True)
class GroupMemo:
    """The memory of a worker about one group. ``offers`` and ``resources``: with the fingerprint of the
    document; resources without the names that only manifests have."""

    size: int = 0
    editions: CRDMemo = field(default_factory=CRDMemo)
    offers: dict[GroupVersion, tuple[str, Offer]] = field(default_factory=dict)
    resources: dict[GroupVersion, tuple[str, Resources]] = field(default_factory=dict)


GroupMemos: TypeAlias = ByteBounded[tuple[str, str], GroupMemo]
"""By the name of the backend, and the group."""


def group_memos() -> GroupMemos:
    return ByteBounded(MEMO_BYTES, size=lambda memo: memo.size)


def read_manifests(name: str, data: bytes, *, limits: Limits) -> FileManifests:
    """The manifests of a file of any content."""
    coding = Coding.GZIP if name.endswith(COMPRESSED) else Coding.IDENTITY
    try:
        plain = decode_body(data, coding, max_bytes=limits.max_bytes)
    except (BadCoding, TooLarge) as error:
        return FileManifests((), str(error))
    try:
        found = recognise(plain, limits=limits)
    except ConverterError as error:
        # A kustomization beside the manifests is ignored; a manifest that cannot be parsed is a fault.
        return FileManifests((), str(error) if b"CustomResourceDefinition" in plain else None)
    if found.kind is not DocumentKind.CRDS:
        return FileManifests(())
    manifests = [manifest_object(name, document) for document in found.documents]
    fault = "nested too deeply" if None in manifests else None
    read = tuple(manifest for manifest in manifests if manifest is not None)
    return FileManifests(read, fault, _loss_note(found.losses))


def build_groups(
    memos: GroupMemos,
    backend: str,
    groups: Mapping[str, Sequence[ManifestObject]],
    *,
    owned: Owned,
    held: Mapping[GroupVersion, Hash],
    limits: Limits,
    templates: Templates = BUNDLED,
) -> tuple[GroupBuilt, ...]:
    """The documents of whole groups, whose manifests are in order of precedence. ``held``: hashes whose bytes
    the caller already has."""
    return tuple(
        _build_group(memos, backend, group, manifests, owned, held, limits, templates)
        for group, manifests in groups.items()
    )


def _build_group(
    memos: GroupMemos,
    backend: str,
    group: str,
    objects: Sequence[ManifestObject],
    owned: Owned,
    held: Mapping[GroupVersion, Hash],
    limits: Limits,
    templates: Templates,
) -> GroupBuilt:
    memo = memos.pop((backend, group)) or GroupMemo()
    problems: list[str] = []
    manifests: list[Document] = []
    for item in objects:
        try:
            manifests.append(parse(zlib.decompress(item.packed), limits=limits))
        except ConverterError as error:
            problems.append(f"{cut(item.name)}: {error}")
    began = time.perf_counter()
    owns = None if owned is None else owned.__contains__
    made = build(manifests, owns=owns, memo=memo.editions, limits=limits, templates=templates)
    shared = (time.perf_counter() - began) / max(1, len(made.documents))
    documents: list[BuiltDocument] = []
    seconds: dict[GroupVersion, float] = {}
    for document, taken in _build_documents(memo, made, held):
        documents.append(document)
        if taken is not None:
            seconds[document.group_version] = shared + taken
    names = dict(filter(None, map(names_of, manifests)))
    resources = {key: name_resources(_resources(memo, made, key), names) for key in made.fingerprints}
    memo.offers = {key: memo.offers[key] for key in made.fingerprints}
    memo.resources = {key: memo.resources[key] for key in made.fingerprints}
    memo.size = sum(item.size for item in objects)
    memos.put((backend, group), memo)
    return GroupBuilt(group, tuple(documents), (*problems, *map(_tell, made.problems)), seconds, resources)


def _build_documents(
    memo: GroupMemo, made: CRDBuild, held: Mapping[GroupVersion, Hash]
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
        body = None if is_held else encode_body(json, Coding.GZIP)
        yield BuiltDocument(group_version, offer, body), time.perf_counter() - began


def _tell(problem: Problem) -> str:
    place = f" at {cut(problem.pointer)}" if problem.pointer else ""
    return f"{cut(problem.crd)}: {problem.construct}{place}: {problem.reason}"


def _resources(memo: GroupMemo, made: CRDBuild, group_version: GroupVersion) -> Resources:
    fingerprint = made.fingerprints[group_version]
    known = memo.resources.get(group_version)
    if known is None or known[0] != fingerprint:
        known = (fingerprint, synthesise(made.documents[group_version], group_version))
        memo.resources[group_version] = known
    return known[1]


def _loss_note(losses: Sequence[Loss]) -> str | None:
    lost = [loss for loss in losses if loss.grade is Grade.LOSS]
    if not lost:
        return None
    more = f", and {len(lost) - 1} more" if len(lost) > 1 else ""
    return f"{cut(lost[0].pointer)}: {lost[0].construct}: {lost[0].reason}{more}"
