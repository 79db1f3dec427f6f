"""What a service answers before its backends have, and what it says of itself."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

import aiohttp
import orjson
import pytest

from deadline import DEADLINE
from fakes.apiserver import FakeAPIServer, document, serving
from fakes.listening import StreamServer
from running.service import backend, service
from specmux_aggregator.aggregation import first_look
from specmux_aggregator.aggregation.backend_sets import BackendSets
from specmux_aggregator.api_discovery import watch
from specmux_aggregator.model.backend import Backend
from specmux_aggregator.server.listener import HTTPServer

EXPLAINED = "/openapi/explain/apis/apps/v1/Deployment"

WITH_ARGUMENTS = {"/openapi/explain", "/openapi/search", "/openapi/ui"}
"""They are asked with what to explain or to search; the page leads on to its folder."""


async def test_an_empty_list_is_not_told_before_a_backend_has_answered() -> None:
    server = FakeAPIServer({"apis/apps/v1": document("apis/apps/v1")})
    server.delay = 0.4
    await server.start()
    try:
        async with service(backend("slow", server.url)) as client:
            for path in ("/openapi/v3", "/apis"):
                status, headers, _ = await client.get(path)
                assert (status, headers["Retry-After"]) == (503, "1"), path
            await client.says_ready()
            await client.until(lambda: bool(client.app.publisher.current.entries))
            status, headers, body = await client.get("/openapi/v3")
            assert (status, list(orjson.loads(body)["paths"])) == (200, ["apis/apps/v1"])
            assert "Specmux-Partial" not in headers
    finally:
        await server.stop()


LISTS = ("/openapi/v3", "/api", "/apis", "/schemas/index.json", "/schemas/catalog.json", "/schemas/all.json")


@asynccontextmanager
async def silent() -> AsyncIterator[str]:
    """A server that takes connections and never says a word; its URL."""

    async def listen(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    server = StreamServer(listen)
    try:
        yield f"http://127.0.0.1:{await server.start()}"
    finally:
        await server.stop()


async def test_starting_is_not_being_empty_however_long_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    """No backend ever answers: past the bound of the first look, too."""
    monkeypatch.setattr(first_look, "BOUND", 0.2)
    monkeypatch.setattr(watch, "BOUND", 0.2)

    async with silent() as url, service(backend("silent", url)) as client:
        await asyncio.sleep(0.5)
        for path in (*LISTS, "/schemas/apps/deployment_v1.json", EXPLAINED, "/readyz"):
            status, headers, _ = await client.get(path)
            assert status == 503, path
            assert path == "/readyz" or headers["Retry-After"] == "1", path


async def test_list_without_a_backend_that_was_not_heard_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_look, "BOUND", 0.2)
    monkeypatch.setattr(watch, "BOUND", 0.2)

    good = FakeAPIServer({"apis/apps/v1": document("apis/apps/v1")})
    async with (
        silent() as url,
        serving(good),
        service(backend("silent", url), backend("good", good.url)) as client,
    ):
        discovery = client.app.discovery
        assert discovery is not None
        await client.until(lambda: bool(client.app.publisher.current.entries), "documents")
        await client.until(lambda: discovery.index.is_complete, "discovery")
        for path in ("/openapi/v3", "/apis"):
            status, headers, _ = await client.get(path)
            assert (status, headers.get("Specmux-Partial")) == (200, "silent"), path
            again = await client.get(path, If_None_Match=headers["ETag"])
            assert (again[0], again[1].get("Specmux-Partial")) == (304, "silent"), path
        assert (await client.get("/readyz"))[0] == 503
        status, headers, _ = await client.get("/schemas/other/thing_v1.json")
        assert (status, headers["Retry-After"]) == (503, "1")
        listed = orjson.loads((await client.get("/schemas/index.json"))[2])
        assert listed["absent"] == ["silent"]


async def test_nothing_is_denied_before_it_is_known_which_backends_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The service listens first: a balancer may ask a replica that starts."""
    is_known, listening = asyncio.Event(), asyncio.Event()
    configure, start = BackendSets.configure, HTTPServer.start
    bound: list[tuple[str, int]] = []

    async def late(self: BackendSets, backends: Iterable[Backend]) -> None:
        await is_known.wait()
        await configure(self, backends)

    async def told(self: HTTPServer) -> tuple[str, int]:
        bound.append(await start(self))
        listening.set()
        return bound[0]

    monkeypatch.setattr(BackendSets, "configure", late)
    monkeypatch.setattr(HTTPServer, "start", told)

    async def asked() -> None:
        await asyncio.wait_for(listening.wait(), DEADLINE)
        base = "http://{}:{}".format(*bound[0])
        try:
            await nothing_is_denied(base)
        finally:
            is_known.set()

    async def nothing_is_denied(base: str) -> None:
        async with aiohttp.ClientSession(base) as session:
            for path in ("/readyz", "/openapi/v3", "/openapi/v3/apis/apps/v1", EXPLAINED, "/apis"):
                async with session.get(path) as answer:
                    assert answer.status == 503, path

    server = FakeAPIServer({"apis/apps/v1": document("apis/apps/v1")})
    await server.start()
    try:
        asking = asyncio.create_task(asked())
        async with service(backend("one", server.url)) as client:
            await asking
            await client.says_ready()
            assert (await client.get("/openapi/v3/apis/apps/v1"))[0] == 200
            assert (await client.get("/openapi/v3/apis/none/v1"))[0] == 404
    finally:
        await server.stop()


async def test_the_root_says_what_this_is() -> None:
    server = FakeAPIServer({"apis/apps/v1": document("apis/apps/v1")})
    await server.start()
    try:
        async with service(backend("one", server.url)) as client:
            await client.says_ready()
            status, headers, body = await client.get("/")
            assert (status, headers["Content-Type"]) == (200, "application/json")
            index = orjson.loads(body)
            assert index["name"] == "specmux"
            asked = [path for path in index["paths"] if path not in WITH_ARGUMENTS]
            assert len(asked) < len(index["paths"])
            assert [(await client.get(path))[0] for path in asked] == [200] * len(asked)
    finally:
        await server.stop()
