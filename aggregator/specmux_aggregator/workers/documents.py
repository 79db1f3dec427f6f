"""Compute documents from a backend's bytes: split, convert, encode, check foreign JSON, compress one with
another, and extract what discovery and definitions need of them. Pure.

These functions run in a worker process (worker.py), so they take and return bytes and small values, and
invalid input is a value as well. A ``BuildMemo`` carries state between calls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Final

import zstandard

from specmux_aggregator.folders import COMPRESSED, group_version_of_file
from specmux_aggregator.http.content_codings import ZSTD_WINDOW, BadCoding, TooLarge, decode_body, encode_body
from specmux_aggregator.http.dictionaries import HEADER
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.observation import Hash, Offer, Provenance
from specmux_aggregator.workers.built import (
    BuiltDocument,
    EncodedDocument,
    FileBuilt,
    GroupBuilt,
    MadeDelta,
    ManifestObject,
    Owned,
    Unencodable,
)
from specmux_aggregator.workers.crds import GroupMemos, build_groups, group_memos
from specmux_aggregator.workers.losses import Losses, losses_by_group_version, losses_of
from specmux_converters import codecs
from specmux_converters.codecs import Fragments
from specmux_converters.crd import Templates, templates_of
from specmux_converters.document import Document, Limits, canonical, content_hash, parse
from specmux_converters.errors import ConverterError, LimitExceeded, Unrepresentable, cut
from specmux_converters.from_swagger2.conversion import convert
from specmux_converters.group_versions import GroupVersion, group_version_of, key_fault, split
from specmux_converters.media_types import JSON, MediaType
from specmux_converters.profiles import PROFILES
from specmux_converters.recognise import DocumentKind, RecognisedInput, recognise
from specmux_converters.resources import Resources
from specmux_converters.synthesis import resources_of

REFUSALS = (TooLarge, BadCoding, ConverterError)
"""Exceptions that a backend's bytes can cause."""

DELTA_LEVEL: Final = 6
"""The first level that finds all of the old document: of 1.97 MB, 6.5 KB in 12 ms; level 3 90 KB in 5 ms, and
level 15 4.9 KB in 296 ms."""

DELTA_MAX: Final = ZSTD_WINDOW
"""Bytes of the largest document that is compressed with another: within the window, the whole dictionary is
in reach to the end."""


@dataclass(slots=True)
class BuildMemo:
    """State of one worker process between builds."""

    fragments: Fragments = field(default_factory=Fragments)
    groups: GroupMemos = field(default_factory=group_memos)


def build_swagger(
    body: bytes,
    coding: Coding,
    *,
    owned: Owned,
    held: Mapping[GroupVersion, Hash],
    limits: Limits,
    max_group_versions: int,
) -> tuple[BuiltDocument, ...] | Failure:
    """The documents of one Swagger 2.0 document. ``held``: hashes whose bytes the caller already has."""
    try:
        plain = decode_body(body, coding, max_bytes=limits.max_bytes)
        recognised = recognise(plain, limits=limits)
        if recognised.kind is not DocumentKind.SWAGGER_2:
            return Failure(Cause.BAD_BODY, f"{recognised.kind.value} where Swagger 2.0 was asked for")
        return convert_document(
            recognised,
            owned=owned,
            held=held,
            max_group_versions=max_group_versions,
        )
    except REFUSALS as error:
        return _failure(error)


def build_file(
    name: str,
    data: bytes,
    *,
    owned: Owned,
    held: Mapping[GroupVersion, Hash],
    limits: Limits,
    max_group_versions: int,
) -> FileBuilt | Failure:
    """The documents of the file ``name`` (a path below its directory): one, or all of a Swagger 2.0
    document."""
    coding = Coding.GZIP if name.endswith(COMPRESSED) else Coding.IDENTITY
    try:
        plain = decode_body(data, coding, max_bytes=limits.max_bytes)
        recognised = recognise(plain, limits=limits)
        if recognised.kind is DocumentKind.CRDS:
            return FileBuilt((), holds_manifests=True)
        (document,) = recognised.documents
        if recognised.kind is DocumentKind.SWAGGER_2:
            return FileBuilt(
                convert_document(
                    recognised,
                    owned=owned,
                    held=held,
                    max_group_versions=max_group_versions,
                )
            )
        group_version = group_version_of_file(name) or _group_version_within(document)
        if group_version is None:
            return FileBuilt((), "neither its name nor its paths tell its group-version")
        if (fault := key_fault(group_version)) is not None:
            return FileBuilt((), f"{cut(group_version)} {fault}")
        if owned is not None and group_version not in owned:
            return FileBuilt((), f"{group_version} is not among the group-versions of this backend")
        losses = losses_of(recognised.losses)
        built = _build(group_version, canonical(document), Provenance.FILE, losses, held)
        return FileBuilt((replace(built, resources=_resources(document, group_version)),))
    except REFUSALS as error:
        return _failure(error)


def build_manifests(
    memo: BuildMemo,
    backend: str,
    groups: Mapping[str, Sequence[ManifestObject]],
    *,
    owned: Owned,
    held: Mapping[GroupVersion, Hash],
    limits: Limits,
    templates: Templates,
) -> tuple[GroupBuilt, ...]:
    """The documents of groups of one backend's CustomResourceDefinitions."""
    return build_groups(
        memo.groups, backend, groups, owned=owned, held=held, limits=limits, templates=templates
    )


def convert_document(
    recognised: RecognisedInput,
    *,
    owned: Owned,
    held: Mapping[GroupVersion, Hash],
    max_group_versions: int,
) -> tuple[BuiltDocument, ...]:
    """The documents per group-version of a Swagger 2.0 document. Raises ConverterError.

    Paths whose group-version cannot be part of a URL are left out.
    """
    taken: set[GroupVersion] = set()

    def owns(group_version: GroupVersion) -> bool:
        if key_fault(group_version) is not None or (owned is not None and group_version not in owned):
            return False
        taken.add(group_version)
        if len(taken) > max_group_versions:
            raise LimitExceeded(f"paths of more than {max_group_versions} group-versions")
        return True

    conversion = convert(recognised.documents[0], owns=owns)
    lost = losses_by_group_version(conversion.outlines, (*recognised.losses, *conversion.losses))
    return tuple(
        _build(
            group_version,
            conversion.json(group_version),
            Provenance.CONVERTED,
            lost[group_version],
            held,
        )
        for group_version in conversion.documents
    )


def encode(
    memo: BuildMemo, json: bytes, coding: Coding, *, media_type: MediaType, limits: Limits
) -> EncodedDocument | Unencodable | Failure:
    """A JSON document in another media type."""
    try:
        document = parse(decode_body(json, coding, max_bytes=limits.max_bytes), limits=limits)
        made = PROFILES.get(media_type)
        if made is not None:
            return EncodedDocument(canonical(made(document)))
        return EncodedDocument(codecs.encode(document, media_type, fragments=memo.fragments))
    except Unrepresentable as error:
        return Unencodable(str(error))
    except (ConverterError, BadCoding, TooLarge) as error:
        return Failure(Cause.BAD_BODY, str(error))


def _failure(refusal: TooLarge | BadCoding | ConverterError) -> Failure:
    match refusal:
        case TooLarge() | LimitExceeded():
            return Failure(Cause.TOO_LARGE, str(refusal))
        case BadCoding():
            return Failure(Cause.TRUNCATED, str(refusal))
        case _:
            return Failure(Cause.BAD_BODY, str(refusal))


def _resources(document: Document, group_version: GroupVersion) -> Resources | None:
    """Extract resources now: parsing the document again would take as long as building it."""
    return None if split(group_version) is None else resources_of(document, group_version)


def _group_version_within(document: Document) -> GroupVersion | None:
    """The single group-version of all paths in the document; None if there are several."""
    paths = document.get("paths")
    keys = {group_version_of(path) for path in paths} if isinstance(paths, dict) else set()
    return keys.pop() if len(keys) == 1 else None


def _build(
    group_version: GroupVersion,
    json: bytes,
    provenance: Provenance,
    losses: Losses,
    held: Mapping[GroupVersion, Hash],
) -> BuiltDocument:
    digest = Hash(content_hash(json))
    offer = Offer(
        hash=digest,
        provenance=provenance,
        size=len(json),
        losses=losses.count,
        loss_examples=losses.named,
    )
    is_held = held.get(group_version) == digest
    return BuiltDocument(group_version, offer, None if is_held else encode_body(json, Coding.GZIP))


def resources_in(
    body: bytes, coding: Coding, group_version: GroupVersion, *, limits: Limits
) -> Resources | Failure:
    """The resources of one document, from its JSON. Kubernetes' own get their short names, which no document
    contains."""
    try:
        document = parse(decode_body(body, coding, max_bytes=limits.max_bytes), limits=limits)
    except (BadCoding, TooLarge, ConverterError) as error:
        return Failure(Cause.BAD_BODY, str(error))
    return resources_of(document, group_version)


def read_templates(body: bytes, coding: Coding, *, limits: Limits) -> Templates | None:
    """None if the document contains no templates, or is invalid."""
    try:
        return templates_of(parse(decode_body(body, coding, max_bytes=limits.max_bytes), limits=limits))
    except (BadCoding, TooLarge, ConverterError):
        return None


def make_delta(
    memo: BuildMemo, old: bytes, new: bytes, coding: Coding, *, media_type: MediaType, limits: Limits
) -> MadeDelta:
    """``old``: JSON as zstd, made into the form ``media_type`` that ``new`` has, in its content coding.

    Without a body if it would not be smaller than ``new``; without a digest if there is no such form.
    """
    limits = replace(limits, max_bytes=min(DELTA_MAX, limits.max_bytes))
    try:
        dictionary = decode_body(old, Coding.ZSTD, max_bytes=limits.max_bytes)
        body = decode_body(new, coding, max_bytes=DELTA_MAX)
    except (BadCoding, TooLarge):
        return MadeDelta(b"", b"")
    if media_type != JSON:
        form = encode(memo, dictionary, Coding.IDENTITY, media_type=media_type, limits=limits)
        if not isinstance(form, EncodedDocument):
            return MadeDelta(b"", b"")
        dictionary = form.body
    digest = sha256(dictionary).digest()
    delta = HEADER + digest + _compress(body, dictionary)
    return MadeDelta(digest, delta if len(delta) < len(new) else b"")


def _compress(body: bytes, dictionary: bytes) -> bytes:
    parameters = zstandard.ZstdCompressionParameters.from_level(
        DELTA_LEVEL,
        source_size=len(body),
        dict_size=len(dictionary),
        window_log=ZSTD_WINDOW.bit_length() - 1,
        write_checksum=True,
    )
    raw = zstandard.ZstdCompressionDict(dictionary, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
    return zstandard.ZstdCompressor(dict_data=raw, compression_params=parameters).compress(body)
