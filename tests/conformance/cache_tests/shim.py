"""An HTTP proxy in front of a caching client library, so that http-tests/cache-tests can test the library.

Each test of the suite is a server of its own for our library: ``/test/<id>`` is the base path, and what the
suite asks for is ``/apis`` below it, which the suite's server ignores. The shim only translates: it answers
conditional requests from what the library gives it, and sends around the library what no client of ours would
ask (other methods, ranges, credentials that change from request to request).
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import aiohttp
from aiohttp import web

from specmux_cache import AsyncSchemaCache, CacheError, CacheOptions

if TYPE_CHECKING:
    from pathlib import Path

HOP_BY_HOP = {
    "connection",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "accept-encoding",
}
CONDITIONS = {"if-none-match", "if-modified-since"}
AROUND = {"range", "authorization", "cookie", "if-match", "if-unmodified-since", "if-range"}


@dataclass(frozen=True)
class Given:
    status: int
    fields: list[tuple[str, str]]
    body: bytes


class Library(Protocol):
    async def get(self, target: str, headers: dict[str, str]) -> Given: ...
    async def close(self) -> None: ...


class Specmux:
    """Our library, on a real directory, with nothing set but the directory."""

    def __init__(self, upstream: str, directory: Path) -> None:
        self._upstream = upstream
        self._options = CacheOptions(directory=directory)
        self._clients: dict[str, AsyncSchemaCache] = {}
        self._stack = AsyncExitStack()
        self._lock = asyncio.Lock()

    async def get(self, target: str, headers: dict[str, str]) -> Given:
        base, path = _divided(target)
        async with self._lock:
            if base not in self._clients:
                client = AsyncSchemaCache(self._upstream + base, self._options)
                self._clients[base] = await self._stack.enter_async_context(client)
        found = await self._clients[base].resource(path, headers=headers)
        return Given(found.status, list(found.fields), found.body)

    async def close(self) -> None:
        await self._stack.aclose()


class Hishel:
    """hishel as a private cache, in the same shim."""

    def __init__(self, upstream: str, directory: Path) -> None:
        import hishel
        import hishel.httpx

        directory.mkdir(parents=True, exist_ok=True)
        storage = hishel.AsyncSqliteStorage(database_path=directory / "hishel.db")
        self._upstream = upstream
        self._client = hishel.httpx.AsyncCacheClient(storage=storage, rfc=hishel.CacheOptions(shared=False))

    async def get(self, target: str, headers: dict[str, str]) -> Given:
        import httpx

        try:
            found = await self._client.get(self._upstream + target, headers=headers)
        except httpx.HTTPError as error:
            raise CacheError(str(error)) from error
        fields = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in found.headers.raw]
        return Given(found.status_code, fields, found.content)

    async def close(self) -> None:
        await self._client.aclose()


class Shim:
    """Serves ``/test/…`` through the library and everything else straight from upstream."""

    def __init__(self, upstream: str, library: Library) -> None:
        self._upstream = upstream
        self._library = library

    async def start(self) -> str:
        """Listen on a loopback port; its URL."""
        self._session = aiohttp.ClientSession(auto_decompress=False)
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._serve)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        return f"http://127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        await self._runner.cleanup()
        await self._session.close()
        await self._library.close()

    async def _serve(self, request: web.Request) -> web.Response:
        names = {name.lower() for name in request.headers}
        if request.method != "GET" or not request.path.startswith("/test/") or names & AROUND:
            given = await self._forwarded(request)
        else:
            headers = _headers(request, HOP_BY_HOP | CONDITIONS)
            try:
                given = await self._library.get(request.path_qs, headers)
            except CacheError as error:
                given = Given(502, [], str(error).encode())
            if given.status == 200 and _holds(request, given):
                given = Given(304, given.fields, b"")
        response = web.Response(status=given.status, body=given.body)
        for name, value in given.fields:
            if name.lower() not in HOP_BY_HOP | {"content-length"}:
                if name.lower() == "content-type":
                    response.headers.popall("Content-Type", None)
                response.headers.add(name, value)
        return response

    async def _forwarded(self, request: web.Request) -> Given:
        body = await request.read()
        async with self._session.request(
            request.method,
            self._upstream + request.path_qs,
            headers=_headers(request, HOP_BY_HOP),
            data=body or None,
            allow_redirects=False,
        ) as response:
            return Given(response.status, list(response.headers.items()), await response.read())


def _divided(target: str) -> tuple[str, str]:
    """("/test/<id>", "/apis…") of a target."""
    path, question, query = target.partition("?")
    _, test, identity, *rest = path.split("/")
    return f"/{test}/{identity}", "/".join(["/apis", *rest]) + question + query


def _headers(request: web.Request, without: set[str]) -> dict[str, str]:
    """One value per name, joined as RFC 9110 5.3 says."""
    joined: dict[str, str] = {}
    for name, value in request.headers.items():
        if name.lower() not in without:
            joined[name] = f"{joined[name]}, {value}" if name in joined else value
    return joined


def _holds(request: web.Request, given: Given) -> bool:
    """Whether the condition of a request says that it has this already (RFC 9110 13.2.2)."""
    fields = {name.lower(): value for name, value in given.fields}
    wanted = request.headers.get("If-None-Match")
    if wanted is not None:
        own = fields.get("etag", "").removeprefix("W/")
        return bool(own) and any(tag.strip().removeprefix("W/") in (own, "*") for tag in wanted.split(","))
    since = request.headers.get("If-Modified-Since")
    return since is not None and since == fields.get("last-modified")
