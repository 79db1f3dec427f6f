"""A client in front of the reference server, and a clock that tests move."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from fakes.openapi_server import Reference, Server, document
from specmux_cache import AsyncSchemaCache, CacheOptions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path


CORE, APPS = document("core"), document("apps")


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def cached(server: Server, directory: Path | None, **options: Any) -> AsyncIterator[AsyncSchemaCache]:
    extra = {name: options.pop(name) for name in ("clock", "headers", "on_event", "warn") if name in options}
    async with AsyncSchemaCache(server.url, CacheOptions(directory=directory, **options), **extra) as cache:
        yield cache


def reference(**options: Any) -> Reference:
    return Reference({"api/v1": CORE, "apis/apps/v1": APPS}, **options)
