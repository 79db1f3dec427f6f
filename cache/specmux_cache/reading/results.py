"""Results of a client's calls, and its events."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal, TypeAlias

from specmux_cache.errors import CacheError
from specmux_cache.http.caching import Fields
from specmux_cache.store.disk_store import StoreStats
from specmux_cache.store.rows import Digest
from specmux_converters.counted_nouns import counted
from specmux_converters.lazy.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Document:
    """The location of a group-version's document."""

    group_version: str
    """The key in the root: ``api/v1``, ``apis/apps/v1``; also such as ``version``, ``openid/v1/jwks``."""
    target: str
    """Path and query below the server's base path."""
    hash: str
    """"" for a document without one."""


@dataclass(frozen=True, slots=True)
class Paths:
    """The discovery root."""

    documents: Mapping[str, Document]
    """Sorted by group-version."""
    refused: tuple[str, ...]
    """Group-versions with a URL that leads to another server; they are not followed."""
    from_cache: bool
    stale: bool
    age: float
    """Seconds since the server last confirmed it."""

    def __repr__(self) -> str:
        stale = ", stale" if self.stale else ""
        return f"<Paths: {len(self.documents)} group-versions, age {self.age:.0f} s{stale}>"


@dataclass(frozen=True, slots=True)
class Schema:
    """A representation of a document."""

    group_version: str
    media_type: str
    body: bytes = field(repr=False)
    digest: Digest
    """sha256 of the body."""
    hash: str
    """The server's; "" if it has none."""
    etag: str | None
    from_cache: bool
    """Whether no body was transferred for this call."""
    stale: bool
    """Whether the server could not confirm that this is the current document, or failed to return it."""
    age: float
    """Seconds since the server returned or confirmed it."""
    lossy: bool
    """Whether the server reports losses of its conversion from Swagger 2.0."""

    def __repr__(self) -> str:
        stale = ", stale" if self.stale else ""
        shown = f"{self.group_version} {self.hash[:12]} {self.media_type}, {len(self.body)} bytes"
        return f"<Schema: {shown}, age {self.age:.0f} s{stale}>"


@dataclass(frozen=True, slots=True)
class Resource:
    """An answer to a GET below /api, /apis or /openapi; any status."""

    status: int
    fields: Fields
    """Includes ``age`` if it comes from the cache (RFC 9111 5.1)."""
    body: bytes = field(repr=False)
    from_cache: bool
    stale: bool
    age: float


@dataclass(frozen=True, slots=True)
class PrefetchResult:
    """The result of a prefetch."""

    fetched: tuple[str, ...]
    present: tuple[str, ...]
    """Group-versions already stored."""
    failed: Mapping[str, CacheError]


@dataclass(frozen=True, slots=True)
class MergedDocument:
    """Many documents as one."""

    document: Mapping[str, Any] = field(repr=False)
    renamed: Mapping[str, Mapping[str, str]]
    """Group-version -> component -> its name in the merged document, where the original name was taken."""
    dropped: Mapping[str, tuple[str, ...]]
    """Group-version -> what the merged document lacks: "<pointer>: <reason>"."""

    def __repr__(self) -> str:
        schemas = self.document.get("components", {}).get("schemas", {})
        paths = counted(len(self.document.get("paths", {})), "path")
        held = f"{paths}, {counted(len(schemas), 'schema')}"
        renamed, dropped = (sum(map(len, each.values())) for each in (self.renamed, self.dropped))
        return f"<MergedDocument: {held}, {renamed} renamed, {dropped} dropped>"


@dataclass(frozen=True, slots=True)
class Publication:
    """A group-version that the server publishes now. ``hash``: None if it was removed; ``previous``: None if
    it is new to the follower."""

    group_version: str
    hash: str | None
    previous: str | None


@dataclass(frozen=True, slots=True)
class MediaTypes:
    """The media types of an operation, as its document states them."""

    consumes: tuple[str, ...]
    """Media types of request bodies; ``*/*`` is unspecific."""
    produces: tuple[str, ...]

    def may_take(self, media_type: str) -> bool:
        """Return whether the operation may accept a body of this type. Apiservers state ``*/*`` for create
        and update, and accept the types that they produce."""
        if "*/*" in self.consumes:
            return media_type in self.produces
        return media_type in self.consumes


@dataclass(frozen=True, slots=True)
class CacheStats:
    """Counters of one client, and the state of its directory."""

    events: Mapping[EventKind, int]
    bytes_fetched: int
    decoded: int
    """Decoded documents in memory."""
    store: StoreStats | None
    """None in memory."""


EventKind: TypeAlias = Literal[
    "hit",  # answered from the cache without a request
    "stale",  # answered from the cache although a request was due
    "revalidated",  # 304
    "fetched",  # a body came from the server
    "delta",  # a body came as its difference from a stored one
    "delta_failed",  # such a body was wrong: it was asked for again as a whole
    "redirected",  # a stale hash
    "refused",  # 406 or 415
    "not_stored",  # fetched but not stored: no-store, or no room
    "failed",  # the server returned nothing usable
]


@dataclass(frozen=True, slots=True)
class Event:
    """An event. ``name``: a group-version, or a path with its leading slash."""

    kind: EventKind
    name: str
    size: int = 0
    """Bytes of the body."""
    seconds: float = 0.0
    """From the request to the complete answer."""
