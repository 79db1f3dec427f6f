"""Servers whose hashes follow from their build, not from bytes (kubernetes/kubernetes#141561)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fakes.apiserver import FakeAPIServer, document, serving
from running.service import Client, backend, service
from specmux_cache import AsyncSchemaCache, CacheOptions

APPS, BATCH = "apis/apps/v1", "apis/batch/v1"


async def served(client: Client, key: str) -> bytes:
    status, headers, body = await client.get((await client.paths())[key])
    assert status == 200
    assert "immutable" in headers["Cache-Control"]
    return body


def test_two_servers_with_the_same_hash_have_their_own_documents(tmp_path: Path) -> None:
    """And each body under its hash, also after a restart from the state directory."""
    one, other = document(APPS, "of one"), document(BATCH, "of another")

    async def scenario() -> None:
        first, second = FakeAPIServer({APPS: one}), FakeAPIServer({BATCH: other})
        first.build = second.build = "v1.39.0 gates"
        async with serving(first), serving(second):
            backends = (backend("a", first.url), backend("b", second.url))
            for _ in range(2):
                async with service(*backends, state=tmp_path) as client:
                    await client.says_ready()
                    assert (await served(client, APPS), await served(client, BATCH)) == (one, other)

    asyncio.run(scenario())


@pytest.mark.parametrize("build", ["", "v1.39.0 gates"])
def test_such_a_document_is_fetched_once_and_again_when_its_hash_changes(build: str) -> None:
    """As often as one whose hash is its own."""

    async def scenario() -> None:
        server = FakeAPIServer({APPS: document(APPS)})
        server.build = build
        async with serving(server), service(backend("a", server.url)) as client:
            await client.says_ready()
            assert await served(client, APPS) == document(APPS)
            looked = server.count("/openapi/v3")
            await client.until(lambda: server.count("/openapi/v3") > looked + 5, "five more looks")
            assert server.count(f"/openapi/v3/{APPS}") == 1
            server.build = build and f"{build}, another"
            server.documents = {APPS: document(APPS, "changed")}
            entries = client.app.publisher.current.entries
            await client.until(lambda: client.app.publisher.current.entries != entries, "a change")
            assert await served(client, APPS) == document(APPS, "changed")
            assert server.count(f"/openapi/v3/{APPS}") == 2

    asyncio.run(scenario())


def test_clients_share_nothing_between_servers_by_a_hash(tmp_path: Path) -> None:
    async def scenario() -> None:
        first, second = (FakeAPIServer({APPS: document(APPS, note)}) for note in ("of one", "of another"))
        first.build = second.build = "v1.39.0 gates"
        async with serving(first), serving(second):
            for server, note in ((first, "of one"), (second, "of another")):
                async with AsyncSchemaCache(server.url, CacheOptions(directory=tmp_path)) as cache:
                    assert (await cache.spec(APPS))["info"]["version"] == note

    asyncio.run(scenario())
