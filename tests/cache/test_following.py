"""Following a server: by its stream, by its list, and across what breaks."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson
import pytest
from aiohttp import web

from deadline import DEADLINE
from fakes.listening import WebServer
from specmux_cache import AsyncSchemaCache, CacheOptions, SchemaCache
from specmux_cache.client import CONNECTIONS_MAX
from specmux_cache.reading.following import Publication

KEY, OTHER = "apis/apps/v1", "apis/batch/v1"


@dataclass
class Published:
    """A server that publishes hashes, and streams them where it is told to."""

    hashes: dict[str, str]
    streams: bool = True
    asked: list[str] = field(default_factory=list)
    script: list[list[dict[str, Any]]] = field(default_factory=list)
    """The events of each connection, one after the other; the last stays open."""
    url: str = ""

    async def root(self, request: web.Request) -> web.Response:
        self.asked.append("root")
        paths = {
            key: {"serverRelativeURL": f"/openapi/v3/{key}?hash={hash}"} for key, hash in self.hashes.items()
        }
        return web.json_response({"paths": paths})

    async def changes(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.query_string)
        if not self.streams or request.headers["Accept"] != "application/jsonl":
            return web.Response(status=404)
        answer = web.StreamResponse(headers={"Content-Type": "application/jsonl"})
        await answer.prepare(request)
        events = self.script.pop(0)
        await answer.write(b"\n" + b"".join(orjson.dumps(event) + b"\n" for event in events))
        if not self.script:
            await asyncio.sleep(30)
        return answer


def event(name: str, number: int, **hashes: str | None) -> dict[str, Any]:
    keys = {"apps": KEY, "batch": OTHER}
    data = {
        keys[name]: None if hash is None else {"hash": hash, "backend": "b"} for name, hash in hashes.items()
    }
    return {"event": name, "id": number, "data": data}


@asynccontextmanager
async def published(server: Published) -> AsyncIterator[None]:
    application = web.Application()
    application.router.add_get("/openapi/v3", server.root)
    application.router.add_get("/openapi/changes", server.changes)
    listening = WebServer(application, shutdown_timeout=0.1)
    server.url = f"http://127.0.0.1:{await listening.start()}"
    try:
        yield
    finally:
        await listening.stop()


async def followed(server: Published, folder: Path, count: int, then: Any = None) -> list[Publication]:
    """What a follower is told first, until so many were."""
    found: list[Publication] = []
    options = CacheOptions(directory=folder)
    async with (
        asyncio.timeout(DEADLINE),
        published(server),
        AsyncSchemaCache(server.url, options, warn=lambda _: None) as cache,
        aclosing(cache.follow(interval=0.05)) as publications,
    ):
        async for publication in publications:
            found.append(publication)
            if len(found) == count:
                break
            if then is not None:
                then(found)
    return found


async def test_the_stream_is_followed_across_connections(tmp_path: Path) -> None:
    script = [
        [event("publications", 5, apps="A", batch="B"), event("publication", 6, apps="C")],
        [event("publication", 7, batch=None)],
        [{"event": "reset", "id": 0, "data": {}}],
        [event("publications", 9, apps="D")],
    ]
    server = Published({KEY: "A", OTHER: "B"}, script=script)
    assert await followed(server, tmp_path, 5) == [
        Publication(KEY, "A", None),
        Publication(OTHER, "B", None),
        Publication(KEY, "C", "A"),
        Publication(OTHER, None, "B"),
        Publication(KEY, "D", "C"),
    ]
    streams = [asked for asked in server.asked if asked != "root"]
    assert streams == [
        "kind=publications",
        "kind=publications&since=6",
        "kind=publications&since=7",
        "kind=publications",
    ]


class OpenStreams(Published):
    """Each connection has one event, and stays open."""

    async def changes(self, request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "application/jsonl"})
        await answer.prepare(request)
        await answer.write(orjson.dumps(event("publications", 1, apps="A")) + b"\n")
        await asyncio.sleep(3600)
        return answer


async def test_streams_take_no_place_of_requests(tmp_path: Path) -> None:
    server = OpenStreams({KEY: "A"})
    async with (
        asyncio.timeout(DEADLINE),
        published(server),
        AsyncSchemaCache(server.url, CacheOptions(directory=tmp_path), warn=lambda _: None) as cache,
        AsyncExitStack() as stack,
    ):
        for _ in range(2 * CONNECTIONS_MAX):
            stream = await stack.enter_async_context(aclosing(cache.follow()))
            assert await anext(stream) == Publication(KEY, "A", None)
            # It waits for the next event, as every follower does.
            waiting = asyncio.create_task(anext(stream))
            stack.push_async_callback(cancelled, waiting)


async def cancelled(task: asyncio.Task[Publication]) -> None:
    task.cancel()
    await asyncio.wait([task])


async def test_a_server_without_a_stream_is_asked_for_its_list(tmp_path: Path) -> None:
    server = Published({KEY: "A"}, streams=False)

    def publish(found: list[Publication]) -> None:
        server.hashes = [{KEY: "B"}, {KEY: "B", OTHER: "C"}, {OTHER: "C"}][len(found) - 1]

    assert await followed(server, tmp_path, 4, publish) == [
        Publication(KEY, "A", None),
        Publication(KEY, "B", "A"),
        Publication(OTHER, "C", None),
        Publication(KEY, None, "B"),
    ]


async def test_what_is_no_stream_is_asked_again(tmp_path: Path) -> None:
    script = [[{"event": "publication"}], [event("publications", 1, apps="A")]]
    server = Published({KEY: "A"}, script=script)
    assert await followed(server, tmp_path, 1) == [Publication(KEY, "A", None)]


def test_the_blocking_client_follows_too(tmp_path: Path) -> None:
    pytest.importorskip("specmux_aggregator")
    from fakes.apiserver import FakeAPIServer
    from fakes.apiserver import document as made
    from running.event_loop import serving

    server = FakeAPIServer({KEY: made(KEY)})
    with serving(server), SchemaCache(server.url, CacheOptions(directory=tmp_path)) as cache:
        publications = cache.follow(interval=0.05)
        first = next(publications)
        assert (first.group_version, first.previous) == (KEY, None)
        server.documents[OTHER] = made(OTHER)
        assert next(publications).group_version == OTHER
        publications.close()  # type: ignore[attr-defined]
