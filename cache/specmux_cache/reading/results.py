"""What the calls of a client return."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from specmux_cache.errors import CacheError
from specmux_cache.http.header_fields import Fields
from specmux_cache.reading.discovery import Document
from specmux_cache.store.rows import Digest
from specmux_converters.deferred_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Paths:
    """The discovery root."""

    documents: Mapping[str, Document]
    """Sorted by group-version."""
    refused: tuple[str, ...]
    """Group-versions that the server names with a URL that is not its own; they are not followed."""
    from_cache: bool
    stale: bool
    age: float
    """Seconds since the server last confirmed it."""

    def __repr__(self) -> str:
        stale = ", stale" if self.stale else ""
        return f"<Paths: {len(self.documents)} group-versions, age {self.age:.0f} s{stale}>"


@dataclass(frozen=True, slots=True)
class Schema:
    """One representation of a document."""

    group_version: str
    media_type: str
    body: bytes = field(repr=False)
    digest: Digest
    """sha256 of the body."""
    hash: str
    """The server's; "" when it has none."""
    etag: str | None
    from_cache: bool
    """No body was transferred for this call."""
    stale: bool
    """The server could not be asked whether this is still the document, or failed to give the one that is."""
    age: float
    """Seconds since the server gave or confirmed it."""
    lossy: bool
    """The server says that its conversion from Swagger 2.0 lost something."""

    def __repr__(self) -> str:
        stale = ", stale" if self.stale else ""
        shown = f"{self.group_version} {self.hash[:12]} {self.media_type}, {len(self.body)} bytes"
        return f"<Schema: {shown}, age {self.age:.0f} s{stale}>"


@dataclass(frozen=True, slots=True)
class Resource:
    """Any other answer below /api, /apis, /openapi."""

    status: int
    fields: Fields
    """With ``age`` when it comes from the cache (RFC 9111 5.1)."""
    body: bytes = field(repr=False)
    from_cache: bool
    stale: bool
    age: float


@dataclass(frozen=True, slots=True)
class PrefetchResult:
    """What a prefetch did."""

    fetched: tuple[str, ...]
    present: tuple[str, ...]
    """Were stored already."""
    failed: Mapping[str, CacheError]


@dataclass(frozen=True, slots=True)
class MergedDocument:
    """Many documents as one."""

    document: Mapping[str, object] = field(repr=False)
    renamed: Mapping[str, Mapping[str, str]]
    """Group-version -> component -> its name in the merged document, where another had taken the first."""
    dropped: Mapping[str, tuple[str, ...]]
    """Group-version -> what its document says and the merged one does not: "<pointer>: <reason>"."""


@dataclass(frozen=True, slots=True)
class Publication:
    """What the server publishes of a group-version now. ``hash`` is None for one that is gone, ``previous``
    for one that is new to the follower."""

    group_version: str
    hash: str | None
    previous: str | None


@dataclass(frozen=True, slots=True)
class MediaTypes:
    """Of an operation, as its document states them."""

    consumes: tuple[str, ...]
    """Of the request body; ``*/*`` says nothing."""
    produces: tuple[str, ...]

    def may_take(self, media_type: str) -> bool:
        """Whether nothing stands against a body of this type: apiservers state ``*/*`` for what they create
        and update, and take there what they give."""
        if "*/*" in self.consumes:
            return media_type in self.produces
        return media_type in self.consumes
