"""Servers whose hashes do not follow from the bytes of documents, as a lazy build of v3 would make them
(kubernetes/kubernetes#141561): from the build, the gates and the routes. Two servers of one build have equal
hashes for different bytes, and two documents of one server, too."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path

import orjson

from deadline import DEADLINE
from fakes.openapi_server import Reference, document, serving
from running.service import Client, backend, service
from specmux_cache import AsyncSchemaCache, CacheOptions

KEYS = ("apis/a.example.com/v1", "apis/b.example.com/v1")


class Built(Reference):
    """All documents have the hash of ``build``."""

    build = "F00D"

    def hash(self, name: str) -> str:
        return self.build


def built(title: str, *keys: str) -> Built:
    return Built({key: document(f"{title} {key}") for key in keys})


async def test_a_cache_shares_nothing_between_servers_and_documents_of_one_hash(tmp_path: Path) -> None:
    servers = [built(title, *KEYS) for title in ("one", "two")]
    async with AsyncExitStack() as stack:
        for _ in range(2):  # at first from the servers, then from the folder
            for each in servers:
                server = await stack.enter_async_context(serving(each))
                options = CacheOptions(directory=tmp_path / "cache")
                async with AsyncSchemaCache(server.url, options) as cache:
                    for key in KEYS:
                        assert (await cache.schema(key)).body == each.documents[key]
                    each.documents = {key: document(f"later {key}") for key in KEYS}
                    each.build = f"{each.build}1"
                async with AsyncSchemaCache(server.url, options) as cache:
                    for key in KEYS:
                        assert (await cache.schema(key)).body == each.documents[key]


async def test_a_service_serves_the_bytes_of_each_server() -> None:
    one, two = built("one", KEYS[0], "apis/c.example.com/v1"), built("two", KEYS[1])
    wanted = {**one.documents, **two.documents}
    async with serving(one) as first, serving(two) as second:
        sources = (backend("one", first.url), backend("two", second.url))
        async with service(*sources) as client:
            await client.until(lambda: len(client.app.publisher.current.entries) == len(wanted))
            await serves(client, wanted)
            one.documents = {key: document(f"later {key}") for key in one.documents}
            one.build = "BEEF"
            before = client.app.publisher.current
            await client.until(lambda: client.app.publisher.current is not before, "changed")
            await serves(client, wanted | one.documents)


async def serves(client: Client, wanted: dict[str, bytes]) -> None:
    async with asyncio.timeout(DEADLINE):
        for key, body in wanted.items():
            while True:  # a redirect: the root is behind
                status, _, found = await client.get((await client.paths())[key], Accept="application/json")
                if status != 301:
                    break
            assert (status, orjson.loads(found)) == (200, orjson.loads(body)), key
