"""The group-versions of one server: its discovery root, and a record of absent ones."""

from __future__ import annotations

from collections.abc import Callable

from specmux_cache.errors import GroupVersionNotFound
from specmux_cache.http.freshness import FreshnessRule
from specmux_cache.http.media_types import JSON
from specmux_cache.http.server import ROOT_PATH, Server
from specmux_cache.reading.calls import Calls
from specmux_cache.reading.discovery import Discovery, Document, parse_discovery
from specmux_cache.reading.exchange import CHECK_INLINE, Exchange, ExchangeRequest, ExchangeResult
from specmux_cache.reading.options import CacheOptions
from specmux_converters.deferred_dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Root:
    """The discovery root as of one request."""

    server: str
    discovery: Discovery
    obtained: ExchangeResult

    def document(self, group_version: str) -> Document:
        """Its location. ``apps/v1`` and ``v1`` are accepted for keys that start with ``apis/`` and ``api/``.

        Raises GroupVersionNotFound.
        """
        documents = self.discovery.documents
        found = documents.get(group_version)
        if found is None:
            prefix = "apis" if "/" in group_version else "api"
            found = documents.get(f"{prefix}/{group_version}")
        if found is None:
            raise GroupVersionNotFound(group_version, server=self.server)
        return found


class Catalog:
    """The root of one server. Raises what Exchange raises."""

    def __init__(
        self,
        server: Server,
        exchange: Exchange,
        *,
        options: CacheOptions,
        calls: Calls,
        clock: Callable[[], float],
    ) -> None:
        self._server = server
        self._url = str(server)
        self._calls = calls
        self._exchange = exchange
        self._options = options
        self._clock = clock
        self._absent: dict[str, float] = {}
        self._parsed: tuple[str, Discovery] | None = None
        self._wanted = ExchangeRequest(
            name=ROOT_PATH,
            target=ROOT_PATH,
            rule=FreshnessRule.REVALIDATED,
            accepted=(JSON,),
            check=lambda body, _: parse_discovery(body, server),
        )

    async def root(self, *, refresh: bool = False) -> Root:
        """``refresh`` asks the server even if the root is still trusted; offline, the server is never
        asked."""
        obtained = await self._exchange.obtain(self._wanted, refresh=refresh)
        entry = obtained.entry
        if self._parsed is None or self._parsed[0] != entry.digest:
            if len(entry.body) <= CHECK_INLINE:
                discovery = parse_discovery(entry.body, self._server)
            else:
                discovery = await self._calls.run(parse_discovery, entry.body, self._server)
            self._parsed = entry.digest, discovery
        return Root(self._url, self._parsed[1], obtained)

    async def find(self, group_version: str, *, refresh: bool = False) -> tuple[Root, Document]:
        """The document, after requesting the root again if it was cached. Raises GroupVersionNotFound."""
        if 0 < self._absent.get(group_version, 0) - self._clock() <= self._options.not_found_ttl:
            raise GroupVersionNotFound(group_version, server=self._url)
        root = await self.root(refresh=refresh)
        try:
            return root, root.document(group_version)
        except GroupVersionNotFound:
            if root.obtained.is_confirmed or self._options.offline:
                self._miss(group_version)
                raise
        root = await self.root(refresh=True)
        try:
            return root, root.document(group_version)
        except GroupVersionNotFound:
            self._miss(group_version)
            raise

    def forget(self, group_version: str | None = None) -> None:
        """Forget that it was absent; None: all of them."""
        if group_version is None:
            self._absent.clear()
        else:
            self._absent.pop(group_version, None)

    def _miss(self, group_version: str) -> None:
        now = self._clock()
        self._absent = {name: until for name, until in self._absent.items() if until > now}
        self._absent[group_version] = now + self._options.not_found_ttl
