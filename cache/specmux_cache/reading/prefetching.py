"""Fetch many documents, several at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import MappingProxyType

from specmux_cache.errors import CacheError
from specmux_cache.reading.results import PrefetchResult


async def prefetched(
    wanted: tuple[str, ...], fetch: Callable[[str], Awaitable[bool]], *, concurrency: int
) -> PrefetchResult:
    """``fetch`` returns whether a document was already stored. A failure does not stop the others."""
    turns = asyncio.Semaphore(concurrency)
    failed: dict[str, CacheError] = {}
    present: dict[str, bool] = {}

    async def look(group_version: str) -> None:
        async with turns:
            try:
                present[group_version] = await fetch(group_version)
            except CacheError as error:
                failed[group_version] = error

    async with asyncio.TaskGroup() as group:
        for group_version in wanted:
            group.create_task(look(group_version))
    return PrefetchResult(
        fetched=tuple(name for name in wanted if present.get(name) is False),
        present=tuple(name for name in wanted if present.get(name)),
        failed=MappingProxyType(failed),
    )
