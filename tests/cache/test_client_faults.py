"""What goes wrong between a client, its server and its disk, with real sockets, files and processes."""

from __future__ import annotations

import asyncio
import gzip
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import zstandard

from cache.client_setting import CORE, options, reference
from fakes.openapi_server import Reference, Reply, Request, document, hash_of, serving
from specmux_cache import AsyncSchemaCache, StoreLimits
from specmux_cache.errors import BadAnswer, RedirectRefused, RequestError

CACHE = str(Path(__file__).resolve().parents[2] / "cache")


def beside_root(reply: Any) -> Any:
    """The reference's root; every document is answered by ``reply``."""
    backend = reference()

    def answer(request: Request) -> Any:
        if request.path == "/openapi/v3":
            return backend(request)
        return reply(request) if callable(reply) else reply

    return answer


def holding(arrived: asyncio.Event, go: asyncio.Event) -> Any:
    """A server whose documents wait for ``go``, once one was asked for."""
    backend = reference()

    async def answer(request: Request) -> Reply:
        if request.path != "/openapi/v3":
            arrived.set()
            await go.wait()
        return backend(request)

    return answer


async def test_leader_when_cancelled_leaves_100_waiters_their_answer(tmp_path):
    """One fetch; client-go's cache would have kept the leader's cancellation as the result."""
    arrived, go = asyncio.Event(), asyncio.Event()
    answer = holding(arrived, go)

    async with serving(answer) as server, AsyncSchemaCache(server.url, options(tmp_path)) as cache:
        leader = asyncio.create_task(cache.schema("v1"))
        await arrived.wait()
        waiters = [asyncio.create_task(cache.schema("v1")) for _ in range(100)]
        await asyncio.sleep(0.1)
        leader.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leader
        go.set()
        assert {schema.body for schema in await asyncio.gather(*waiters)} == {CORE}
        assert len(server.seen("/openapi/v3/api/v1")) == 1


async def test_fetch_when_everybody_was_cancelled_is_stored_all_the_same(tmp_path):
    arrived, go = asyncio.Event(), asyncio.Event()
    answer = holding(arrived, go)

    async with serving(answer) as server, AsyncSchemaCache(server.url, options(tmp_path)) as cache:
        only = asyncio.create_task(cache.schema("v1"))
        await arrived.wait()
        only.cancel()
        with pytest.raises(asyncio.CancelledError):
            await only
        go.set()
        assert (await cache.schema("v1")).body == CORE
        assert len(server.seen("/openapi/v3/api/v1")) == 1


async def test_cold_gets_when_20_come_at_once_are_one_fetch(tmp_path):
    async with serving(reference()) as server, AsyncSchemaCache(server.url, options(tmp_path)) as cache:
        await asyncio.gather(*(cache.schema("v1") for _ in range(20)))
        assert (len(server.seen("/openapi/v3")), len(server.seen("/openapi/v3/api/v1"))) == (1, 1)


PROCESS = """
import sys
import time
from pathlib import Path
from specmux_cache import CacheOptions, SchemaCache
options = CacheOptions(directory=Path(sys.argv[2]), flight_timeout=float(sys.argv[3]))
with SchemaCache(sys.argv[1], options) as cache:
    print(cache.schema("v1").digest)
"""


async def processes(count: int, *arguments: str) -> list[str]:
    """What ``count`` processes that ask for the same at the same time print."""
    started = [
        await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            PROCESS,
            *arguments,
            env={**os.environ, "PYTHONPATH": CACHE},
            stdout=subprocess.PIPE,
        )
        for _ in range(count)
    ]
    ended = await asyncio.gather(*(process.communicate() for process in started))
    assert [process.returncode for process in started] == [0] * count
    return [output.decode().strip() for output, _ in ended]


def test_cold_gets_when_processes_share_a_directory_are_one_fetch(tmp_path):
    backend = reference()

    async def answer(request: Request) -> Reply:
        if request.path != "/openapi/v3":
            # Until all the processes have asked for the root: then all want the document.
            while len(server.seen("/openapi/v3")) < 4:
                await asyncio.sleep(0.01)
        return backend(request)

    async def main() -> None:
        nonlocal server
        async with serving(answer) as server:
            digests = await processes(4, server.url, str(tmp_path / "c"), "60")
            assert len(set(digests)) == 1
            assert len(server.seen("/openapi/v3/api/v1")) == 1

    server: Any = None
    asyncio.run(main())


def test_fetch_when_another_process_holds_the_lock_for_too_long_is_made_anyway(tmp_path):
    backend = reference()
    go = asyncio.Event()

    async def answer(request: Request) -> Reply:
        if request.path != "/openapi/v3" and len(server.seen(request.path)) == 1:
            await go.wait()
        return backend(request)

    async def main() -> None:
        nonlocal server
        async with serving(answer) as server:
            slow = asyncio.create_task(processes(1, server.url, str(tmp_path / "c"), "60"))
            while not server.seen("/openapi/v3/api/v1"):
                await asyncio.sleep(0.01)
            async with AsyncSchemaCache(server.url, options(tmp_path, flight_timeout=0.1)) as cache:
                assert not (await cache.schema("v1")).from_cache
            go.set()
            await slow

    server: Any = None
    asyncio.run(main())


@pytest.mark.parametrize(
    ("location", "reason"),
    [
        ("?hash=OTHER", "second"),
        ("http://evil.example/openapi/v3/api/v1?hash=A", "to another server"),
        ("//evil.example/openapi/v3/api/v1?hash=A", "to another server"),
        ("/openapi/v3/apis/apps/v1?hash=A", "another document"),
        ("/secrets", "to another server"),
        ("", "itself"),
    ],
)
async def test_redirect_when_it_leads_round_or_away_is_refused(tmp_path, location, reason):
    answer = beside_root(Reply(301, headers=[("Location", location)]))
    async with (
        serving(answer) as server,
        AsyncSchemaCache(server.url, options(tmp_path), headers={"Authorization": "Bearer x"}) as cache,
    ):
        with pytest.raises(RedirectRefused, match=reason):
            await cache.schema("v1")
        assert len(server.seen("/openapi/v3/api/v1")) <= 2
        assert (await cache.stats()).store.entries == 1


async def test_redirect_when_the_server_goes_back_and_forth_ends_with_what_is_there(tmp_path):
    """A → B → A: a cache that stored the redirects would go round for ever."""
    backend = Reference({"api/v1": document("a")})

    async with (
        serving(backend) as server,
        AsyncSchemaCache(server.url, options(tmp_path, root_ttl=3600.0)) as cache,
    ):
        for title in ("a", "b", "a", "b"):
            backend.documents["api/v1"] = document(title)
            assert (await cache.schema("v1")).hash in {hash_of(document("a")), hash_of(document(title))}
        assert (await cache.schema("v1")).body in {document("a"), document("b")}


def typed(body: bytes, *more: tuple[str, str], status: int = 200, length: int | None = None) -> Reply:
    return Reply(status, body, [("Content-Type", "application/json"), *more], length)


def coded(coding: str, body: bytes) -> Reply:
    return typed(body, ("Content-Encoding", coding))


@pytest.mark.parametrize(
    "reply",
    [
        pytest.param(typed(CORE[:1000], length=len(CORE)), id="truncated"),
        pytest.param(typed(CORE[:-1]), id="cut"),
        pytest.param(coded("gzip", b"\x1f\x8b"), id="gzip header"),
        pytest.param(coded("gzip", gzip.compress(CORE)[:-9]), id="gzip cut"),
        pytest.param(coded("zstd", zstandard.compress(CORE)[:-9]), id="zstd cut"),
        pytest.param(coded("br", b"\x0b\x02\x80{}\x03"), id="unknown coding"),
        pytest.param(typed(b"<html>"), id="html"),
        pytest.param(typed(b"[]"), id="array"),
        pytest.param(typed(b""), id="empty"),
        pytest.param(typed(CORE, status=206), id="partial"),
        pytest.param(Reply(200, CORE, [("Content-Type", "text/html")]), id="another type"),
        pytest.param(Reply(304), id="304 to nothing"),
    ],
)
async def test_answer_when_it_is_not_a_whole_document_is_neither_used_nor_stored(tmp_path, reply):
    backend = reference()
    async with (
        serving(beside_root(reply)) as server,
        AsyncSchemaCache(server.url, options(tmp_path)) as cache,
    ):
        with pytest.raises(RequestError):
            await cache.schema("v1")
        assert (await cache.stats()).store.entries == 1
        server.answer = backend
        assert (await cache.schema("v1")).body == CORE


async def test_connection_when_it_is_closed_in_the_middle_of_an_answer_that_has_no_length(tmp_path):
    """Only parsing the document tells; HTTP does not."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        body = reference().root() if b" /openapi/v3 " in head else CORE[:5000]
        writer.write(b"HTTP/1.0 200 OK\r\nContent-Type: application/json\r\n\r\n" + body)
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    async with AsyncSchemaCache(url, options(tmp_path)) as cache:
        with pytest.raises(BadAnswer, match="not JSON"):
            await cache.schema("v1")
    listening.close()
    await listening.wait_closed()


@pytest.mark.parametrize(("coding", "pack"), [("gzip", gzip.compress), ("zstd", zstandard.compress)])
async def test_bomb_when_it_would_unpack_beyond_the_limit_is_refused(tmp_path, coding, pack):
    packed = pack(b"{" + b" " * (80 * 1024 * 1024))
    reply = Reply(200, packed, [("Content-Type", "application/json"), ("Content-Encoding", coding)])
    limited = options(tmp_path, limits=StoreLimits(max_body_bytes=1024 * 1024))
    async with serving(beside_root(reply)) as server, AsyncSchemaCache(server.url, limited) as cache:
        with pytest.raises(BadAnswer, match="max_body_bytes"):
            await cache.schema("v1")


async def test_body_when_it_is_larger_than_the_limit_is_not_read_to_its_end(tmp_path):
    limited = options(tmp_path, limits=StoreLimits(max_body_bytes=100_000))
    async with serving(reference()) as server, AsyncSchemaCache(server.url, limited) as cache:
        with pytest.raises(BadAnswer, match="max_body_bytes"):
            await cache.schema("v1")


@pytest.mark.parametrize("coding", ["gzip", "zstd"])
async def test_body_when_it_is_packed_is_stored_unpacked(tmp_path, coding):
    packed = gzip.compress(CORE) if coding == "gzip" else zstandard.compress(CORE)

    reply = Reply(200, packed, [("Content-Type", "application/json"), ("Content-Encoding", coding)])
    async with (
        serving(beside_root(reply)) as server,
        AsyncSchemaCache(server.url, options(tmp_path)) as cache,
    ):
        assert [(await cache.schema("v1")).body for _ in range(2)] == [CORE, CORE]
        assert server.requests[-2].headers["accept-encoding"] == "zstd, gzip"


async def test_304_when_it_names_another_content_type_changes_nothing(tmp_path):
    """Seen with client-go: the entry took the type over and kubectl reported no resources at all."""
    backend = reference()

    def answer(request: Request) -> Reply:
        reply = backend(request)
        if reply.status == 304:
            return Reply(
                304, headers=[*reply.headers, ("Content-Type", "text/html"), ("Content-Encoding", "gzip")]
            )
        return reply

    async with serving(answer) as server:
        for _ in range(3):
            async with AsyncSchemaCache(server.url, options(tmp_path)) as cache:
                assert "api/v1" in (await cache.paths()).documents


def test_304_when_it_is_about_another_representation_is_asked_again_without_conditions(tmp_path):
    bodies = [b'{"paths":{}}', reference().root()]

    def answer(request: Request) -> Reply:
        if "if-none-match" in request.headers:
            return Reply(304, headers=[("Etag", '"other"')])
        return Reply(200, bodies[min(len(server.requests), 2) - 1], [("Etag", '"own"')])

    async def main() -> None:
        nonlocal server
        async with serving(answer) as server, AsyncSchemaCache(server.url, options(tmp_path)) as cache:
            assert not (await cache.paths()).documents
            assert "api/v1" in (await cache.paths()).documents

    server: Any = None
    asyncio.run(main())
