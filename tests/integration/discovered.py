"""Backends with discovery, and what the service shows of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import orjson

from fakes.apiserver import FakeAPIServer, document
from fakes.discovery import V2
from running.service import Client

APPS, BATCH, CORE = "apis/apps/v1", "apis/batch/v1", "api/v1"


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(scenario())


def server(*keys: str) -> FakeAPIServer:
    return FakeAPIServer({key: document(key) for key in keys})


async def items(client: Client, path: str = "/apis") -> dict[str, Any]:
    """Version → what the aggregated form says of it."""
    status, headers, body = await client.get(path, Accept=V2)
    assert (status, headers["Content-Type"]) == (200, V2)
    found = {}
    for item in orjson.loads(body)["items"]:
        for version in item["versions"]:
            group = item["metadata"].get("name", "")
            found[f"{group}/{version['version']}".lstrip("/")] = version
    return found


async def complete(client: Client) -> None:
    await client.ready()
    await client.until(lambda: bool(client.app.discovery and client.app.discovery.index.is_complete), "asked")


def shown(client: Client) -> dict[str, str]:
    """Group-version → owner and freshness, as the service holds them."""
    assert client.app.discovery is not None
    versions = client.app.discovery.index.directory.versions()
    return {item.group_version: f"{item.owner} {item.freshness}" for item in versions}


def is_shown(client: Client, wanted: dict[str, str]) -> Callable[[], bool]:
    return lambda: shown(client) == wanted
