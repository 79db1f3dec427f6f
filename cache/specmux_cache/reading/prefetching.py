"""Fetch many documents, several at a time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import MappingProxyType

from specmux_cache.errors import CacheError
from specmux_cache.reading.client_runtime import Calls
from specmux_cache.reading.discovery import Discovery
from specmux_cache.reading.entry_store import EntryStore
from specmux_cache.reading.results import PrefetchResult


async def prefetch_documents(
    names: tuple[str, ...], fetch: Callable[[str], Awaitable[bool]], *, calls: Calls, concurrency: int
) -> PrefetchResult:
    """``fetch`` returns whether a document was already stored. A failure does not stop the others."""
    failed: dict[str, CacheError] = {}
    present: set[str] = set()

    async def look(name: str) -> None:
        try:
            if await fetch(name):
                present.add(name)
        except CacheError as error:
            failed[name] = error

    await calls.each(look, names, concurrency=concurrency)
    return PrefetchResult(
        fetched=tuple(name for name in names if name not in present and name not in failed),
        present=tuple(name for name in names if name in present),
        failed=MappingProxyType(failed),
    )


async def stored_documents(
    entry_store: EntryStore, discovery: Discovery, accepted: tuple[str, ...]
) -> frozenset[str]:
    """Group-versions stored with the hash that they have now, found without reading a body."""
    keys = [row.key for row in await entry_store.rows()]
    stored = {(key.group_version, key.hash) for key in keys if key.hash and key.media_type in accepted}
    return frozenset(
        name for name, document in discovery.documents.items() if (name, document.hash) in stored
    )
