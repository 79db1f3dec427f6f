"""Values that jobs of the worker processes take and give."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import orjson

from specmux_aggregator.model.observation import Hash, Offer
from specmux_aggregator.model.snapshot import DocumentKey
from specmux_converters.group_versions import GroupVersion
from specmux_converters.json_values import mapping, text
from specmux_converters.resources import Resources

Owned = frozenset[GroupVersion] | None
"""The group-versions that a backend may publish; None: all."""


@dataclass(frozen=True, slots=True)
class BuiltDocument:
    """A document built here. ``gzip`` is its canonical JSON; None if the caller already has that hash."""

    group_version: GroupVersion
    offer: Offer
    gzip: bytes | None
    resources: Resources | None = None
    """The resources in the document, if it was parsed while being built; None: not extracted."""


@dataclass(frozen=True, slots=True)
class FileBuilt:
    """The result of one file of a directory. ``note``: why it yields nothing, or a warning."""

    documents: tuple[BuiltDocument, ...]
    note: str | None = None
    holds_manifests: bool = False
    """Whether it contains CustomResourceDefinitions, which are built together."""


@dataclass(frozen=True, slots=True)
class EncodedDocument:
    """A document in one media type, without content coding."""

    body: bytes


@dataclass(frozen=True, slots=True)
class Unencodable:
    """Why a document has no form in a media type."""

    reason: str


@dataclass(frozen=True, slots=True)
class ManifestFile:
    """A file of any content."""

    name: str
    data: bytes


@dataclass(frozen=True, slots=True)
class ManifestObject:
    """One CustomResourceDefinition. ``packed``: its JSON, compressed to a tenth, since thousands are kept."""

    name: str
    group: str
    """"" if the manifest has none."""
    digest: bytes
    size: int
    """Bytes of the JSON."""
    packed: bytes = field(repr=False)


def manifest_object(name: str, document: Mapping[str, object]) -> ManifestObject | None:
    """None if it is nested too deeply."""
    try:
        json = orjson.dumps(document, option=orjson.OPT_SORT_KEYS)
    except orjson.JSONEncodeError:
        return None
    group = text(mapping(document.get("spec")).get("group"))
    return ManifestObject(name, group, hashlib.sha256(json).digest(), len(json), zlib.compress(json, 1))


@dataclass(frozen=True, slots=True)
class GroupBuilt:
    """The documents of one API group. ``seconds``: duration for each newly built group-version, from
    manifests to bytes."""

    group: str
    documents: tuple[BuiltDocument, ...]
    problems: tuple[str, ...]
    seconds: Mapping[GroupVersion, float]
    resources: Mapping[GroupVersion, Resources]


class MadeDelta(NamedTuple):
    """A document compressed with another as dictionary."""

    digest: bytes
    """SHA-256 of the dictionary."""
    body: bytes
    """Empty if it saves nothing or cannot be made."""


class NeededDocuments(NamedTuple):
    """Documents whose part is not cached here."""

    keys: tuple[DocumentKey, ...]


class SwaggerForm(NamedTuple):
    """The merged document in one form, and the documents that it lacks."""

    body: bytes
    refused: tuple[DocumentKey, ...]
    """Missing from every form."""
    unfit: tuple[DocumentKey, ...] = ()
    """Without a place in this form."""


class SchemaSource(NamedTuple):
    """A document, with the hash that identifies its content."""

    group_version: GroupVersion
    hash: Hash
    json: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FileContext:
    """The parts of a file besides the documents."""

    tree: str
    """The hash of the file's tree."""
    absent: tuple[str, ...] = ()
    """Backends whose kinds are missing, and group-versions whose document cannot be parsed."""
    base: str = ""
