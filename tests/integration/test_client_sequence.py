"""The client library through a day of a server's life, in the order in which kubectl would meet it.

Root, document, stale hash, new hash, server down, server back: against the headers of the Go reference, and
against our aggregator.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

import pytest

from deadline import DEADLINE
from fakes.openapi_server import Reference, Server, document
from running.service import directory, service
from specmux_aggregator.config.settings import ListenSettings
from specmux_cache import AsyncSchemaCache, CacheOptions, GroupVersionNotFound, Schema
from specmux_cache.errors import ServerUnreachable

FIRST, SECOND = document("first"), document("second")


def title(schema: Schema) -> str:
    """Our aggregator writes JSON its own way; the title tells the documents apart."""
    return str(json.loads(schema.body)["info"]["title"])


class Upstream(Protocol):
    url: str

    async def publish(self, group_version: str, body: bytes) -> None: ...
    async def start(self) -> None: ...
    async def stop(self) -> None: ...


class GoReference:
    """Kubernetes' handlers, by their recorded headers."""

    def __init__(self, *, with_root_etag: bool) -> None:
        self._backend = Reference({}, with_root_etag=with_root_etag)
        self._server = Server(self._backend)

    @property
    def url(self) -> str:
        return self._server.url

    async def publish(self, group_version: str, body: bytes) -> None:
        self._backend.documents[group_version] = body

    async def start(self) -> None:
        await self._server.start()

    async def stop(self) -> None:
        await self._server.stop()


class Aggregator:
    """Ours, serving a directory of documents."""

    def __init__(self, documents: Path) -> None:
        self._documents = documents
        self._running: AbstractAsyncContextManager[Any] | None = None
        self.url = ""

    async def publish(self, group_version: str, body: bytes) -> None:
        path = self._documents / f"{group_version}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(body)

    async def start(self) -> None:
        port = int(self.url.rpartition(":")[2] or 0)
        listen = ListenSettings(port=port, shutdown_timeout=1.0)
        self._running = service(directory("files", self._documents), listen=listen)
        client = await self._running.__aenter__()
        await client.ready()
        self.url = client.base

    async def stop(self) -> None:
        if self._running is not None:
            running, self._running = self._running, None
            await running.__aexit__(None, None, None)


@asynccontextmanager
async def started(upstream: Upstream) -> AsyncIterator[Upstream]:
    await upstream.publish("api/v1", FIRST)
    await upstream.start()
    try:
        yield upstream
    finally:
        await upstream.stop()


async def eventually(is_so: Callable[[], Any]) -> None:
    async with asyncio.timeout(DEADLINE):
        while not await is_so():
            await asyncio.sleep(0.02)


@pytest.mark.parametrize("kind", ["kube-apiserver", "kube-aggregator", "specmux"])
async def test_a_client_through_the_life_of_a_server(tmp_path: Path, kind: str) -> None:
    upstream: Any = (
        Aggregator(tmp_path / "documents")
        if kind == "specmux"
        else GoReference(with_root_etag=kind == "kube-apiserver")
    )

    options = CacheOptions(directory=tmp_path / "cache")
    async with started(upstream):
        # A program that trusts the root it read once, as kubectl does within a command.
        trusting = CacheOptions(directory=tmp_path / "own", root_ttl=3600.0)
        async with AsyncSchemaCache(upstream.url, trusting) as long_lived:
            assert list((await long_lived.paths()).documents) == ["api/v1"]
            first = await long_lived.schema("v1")
            assert title(first) == "first"
            assert (await long_lived.schema("v1")).from_cache

            await upstream.publish("api/v1", SECOND)
            async with AsyncSchemaCache(upstream.url, CacheOptions(directory=None)) as witness:

                async def is_published() -> bool:
                    return title(await witness.schema("v1")) == "second"

                await eventually(is_published)
            # A program that asks for the root.
            async with AsyncSchemaCache(upstream.url, options) as cache:
                second = await cache.schema("v1")
                assert (title(second), second.from_cache) == ("second", False)
                assert second.hash != first.hash
            await long_lived.invalidate("v1")
            # Its root names the first hash still: the server redirects.
            redirected = await long_lived.schema("v1")
            assert (redirected.body, redirected.hash) == (second.body, second.hash)
            assert (await long_lived.stats()).events["redirected"] == 1

        async with AsyncSchemaCache(upstream.url, options) as cache:
            assert (await cache.schema("v1")).from_cache
            await upstream.stop()
            down = await cache.schema("v1")
            assert (down.body, down.stale) == (second.body, True)
            with pytest.raises((GroupVersionNotFound, ServerUnreachable)):
                await cache.schema("apps/v1")

            await upstream.publish("apis/apps/v1", FIRST)
            await upstream.start()
            back = await cache.schema("v1")
            assert (back.body, back.stale, back.from_cache) == (second.body, False, True)
            apps = await cache.wait_for("apps/v1", within=DEADLINE)
            assert (title(apps), apps.stale) == ("first", False)


async def test_every_format_when_our_aggregator_serves_it(tmp_path: Path) -> None:
    options = CacheOptions(directory=tmp_path / "cache", allow_cbor=True, prefer_cbor=True)
    async with started(Aggregator(tmp_path / "documents")) as upstream:
        async with AsyncSchemaCache(upstream.url, options) as cache:
            cbor = await cache.schema("v1")
            json_, protobuf = (
                await cache.schema("v1", media="json"),
                await cache.schema("v1", media="protobuf"),
            )
            assert cbor.media_type == "application/cbor"
            assert len({cbor.etag, json_.etag, protobuf.etag}) == 3
            assert len({cbor.hash, json_.hash, protobuf.hash}) == 1
            assert (await cache.spec("v1"))["info"]["title"] == "first"
        async with AsyncSchemaCache(upstream.url, options) as cache:
            for media, body in (("cbor", cbor.body), ("json", json_.body), ("protobuf", protobuf.body)):
                again = await cache.schema("v1", media=media)
                assert (again.body, again.from_cache) == (body, True)
