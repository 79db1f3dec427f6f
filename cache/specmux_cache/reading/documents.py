"""Read the root, documents and other resources. Written once for clients with and without an event loop.

This module defines requests and results; ``exchange`` performs them, ``freshness`` decides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from specmux_cache.errors import UnexpectedStatus
from specmux_cache.http.freshness import FreshnessRule, age_of
from specmux_cache.http.header_fields import AGE_MAX, fields_of, replaced
from specmux_cache.http.media_types import accepted_for
from specmux_cache.http.server import Server, name_of
from specmux_cache.reading.decoding import check_document
from specmux_cache.reading.discovery import Document
from specmux_cache.reading.exchange import ExchangeRequest, ExchangeResult
from specmux_cache.reading.opening import OpenCache
from specmux_cache.reading.options import CacheOptions
from specmux_cache.reading.results import Paths, Resource, Schema
from specmux_cache.reading.root import Root

NOT_PER_REQUEST: Final = frozenset(
    {"authorization", "cookie", "if-modified-since", "if-none-match", "proxy-authorization", "range"}
)
"""Fields that identify the caller, which only the client may set, and those that the cache decides on."""


class ServerDocuments:
    """The documents of one server. Raises what Exchange raises."""

    def __init__(
        self, server: Server, opened: OpenCache, *, options: CacheOptions, clock: Callable[[], float]
    ) -> None:
        self._server = server
        self._opened = opened
        self._accepted = options.accepted
        self._clock = clock

    async def paths(self, *, refresh: bool = False) -> Paths:
        root = await self._opened.catalog.root(refresh=refresh)
        found, obtained = root.discovery, root.obtained
        age = self._since(obtained)
        return Paths(found.documents, found.refused, obtained.from_cache, obtained.is_stale, age)

    async def schema(self, group_version: str, media: str | None = None) -> Schema:
        """Raises GroupVersionNotFound, MediaTypeRefused."""
        accepted = None if media is None else accepted_for(media)
        catalog = self._opened.catalog
        root, document = await catalog.find(group_version)
        try:
            return await self.represented(root, document, accepted)
        except UnexpectedStatus as error:
            # The root with its URL was not requested now, and the document may have moved since.
            if error.status not in (404, 410) or root.obtained.is_confirmed:
                raise
        root, document = await catalog.find(group_version, refresh=True)
        return await self.represented(root, document, accepted)

    async def represented(
        self, root: Root, document: Document, accepted: tuple[str, ...] | None = None
    ) -> Schema:
        """The document in the best of these media types, by default those of the options."""
        wanted = ExchangeRequest(
            name=document.group_version,
            target=document.target,
            rule=FreshnessRule.HASHED if document.hash else FreshnessRule.REVALIDATED,
            hash=document.hash,
            accepted=accepted or self._accepted,
            check=check_document,
        )
        obtained = await self._opened.exchange.obtain(wanted)
        entry = obtained.entry
        return Schema(
            group_version=document.group_version,
            media_type=entry.key.media_type,
            body=entry.body,
            digest=entry.digest,
            hash=entry.key.hash,
            etag=entry.held.etag,
            from_cache=obtained.from_cache,
            stale=obtained.is_stale or root.obtained.is_stale,
            age=self._since(obtained),
            lossy=entry.held.is_lossy,
        )

    async def resource(self, path: str, headers: Mapping[str, str] = MappingProxyType({})) -> Resource:
        """Raises ValueError for a path elsewhere, and for header fields that a single request must not
        set."""
        target = self._server.target(path) if path.startswith("/") else None
        if target is None:
            raise ValueError("a path of this server below /api, /apis or /openapi")
        fields = fields_of(headers.items())
        if not NOT_PER_REQUEST.isdisjoint(name for name, _ in fields):
            raise ValueError("credentials go with the client; conditions and ranges are the cache's")
        obtained = await self._opened.exchange.obtain(
            ExchangeRequest(name_of(target), target, FreshnessRule.PLAIN, fields=fields)
        )
        held = obtained.entry.held
        age = min(age_of(held, now=self._clock()), float(AGE_MAX))
        kept = replaced(held.fields, (("age", str(int(age))),)) if obtained.from_cache else held.fields
        return Resource(
            obtained.status, kept, obtained.entry.body, obtained.from_cache, obtained.is_stale, age
        )

    def _since(self, obtained: ExchangeResult) -> float:
        """Seconds since the server returned or confirmed it; 0 if the clock was set back since."""
        return max(0.0, self._clock() - obtained.entry.held.received_at)
