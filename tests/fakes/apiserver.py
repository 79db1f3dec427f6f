"""An apiserver for tests: real HTTP on loopback, whose documents and moods the test changes while it runs."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
from aiohttp import web

from fakes.discovery import FakeDiscovery
from fakes.listening import WebServer


def document(group_version: str, note: str = "") -> bytes:
    """A small OpenAPI v3 document of one group-version."""
    return orjson.dumps(
        {
            "openapi": "3.0.0",
            "info": {"title": "test", "version": note or "1"},
            "paths": {f"/{group_version}/things": {"get": {"responses": {"200": {"description": "OK"}}}}},
        }
    )


def swagger(group_version: str, note: str = "") -> bytes:
    """The same as Swagger 2.0."""
    return orjson.dumps(
        {
            "swagger": "2.0",
            "info": {"title": "test", "version": note or "1"},
            "paths": {
                f"/{group_version}/things": {
                    "get": {
                        "schemes": ["https"],
                        "produces": ["application/json"],
                        "responses": {"200": {"description": "OK"}},
                    }
                }
            },
        }
    )


def hash_of(body: bytes) -> str:
    return hashlib.sha512(body).hexdigest().upper()


class FakeAPIServer:
    """``documents``: what /openapi/v3 serves; None: 404, as before Kubernetes 1.24.

    ``log`` holds the requests seen.
    """

    def __init__(
        self, documents: dict[str, bytes] | None = None, swagger_document: bytes | None = None
    ) -> None:
        self.documents = documents
        self.swagger_document = swagger_document
        self.listed: dict[str, bytes] | None = None
        """What the root lists, where it lags behind ``documents``."""
        self.without_hash: set[str] = set()
        self.build = ""
        """Where there is one, every hash follows from it alone, and not from a document's bytes."""
        self.delay = 0.0
        self.gate: asyncio.Event | None = None
        """Documents wait for it."""
        self.log: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.discovery = FakeDiscovery()
        """Has a log of its own."""
        self.url = ""
        self.host = "127.0.0.1"
        self._server: WebServer | None = None
        self._port = 0

    async def start(self) -> None:
        application = web.Application()
        application.router.add_get("/openapi/v3", self._root)
        application.router.add_get("/openapi/v2", self._swagger)
        application.router.add_get("/openapi/v3/{key:.+}", self._document)
        for path in ("/api", "/apis", "/api/{rest:.+}", "/apis/{rest:.+}", "/version"):
            application.router.add_get(path, self._discovery)
        self._server = WebServer(application, host=self.host)
        self._port = await self._server.start(self._port)
        self.url = f"http://{self.host}:{self._port}"

    async def stop(self) -> None:
        """Close the port; ``start`` opens the same one again."""
        if self._server is not None:
            server, self._server = self._server, None
            await server.stop()

    def count(self, prefix: str) -> int:
        return sum(line.startswith(prefix) for line in self.log)

    def _note(self, request: web.Request) -> None:
        self.log.append(request.path_qs)
        self.headers.append(dict(request.headers))

    async def _root(self, request: web.Request) -> web.Response:
        self._note(request)
        await asyncio.sleep(self.delay)
        documents = self.documents if self.listed is None else self.listed
        if documents is None:
            raise web.HTTPNotFound
        paths: dict[str, Any] = {}
        for key, body in documents.items():
            query = "" if key in self.without_hash else f"?hash={self._hash(body)}"
            paths[key] = {"serverRelativeURL": f"/openapi/v3/{key}{query}"}
        body = orjson.dumps({"paths": paths})
        return _conditional(request, body)

    async def _document(self, request: web.Request) -> web.Response:
        self._note(request)
        await asyncio.sleep(self.delay)
        if self.gate is not None:
            await self.gate.wait()
        key = request.match_info["key"]
        if self.documents is None or key not in self.documents:
            raise web.HTTPNotFound
        body = self.documents[key]
        asked = request.query.get("hash")
        if asked not in (None, self._hash(body)):
            raise web.HTTPMovedPermanently(f"/openapi/v3/{key}?hash={self._hash(body)}")
        return _conditional(request, body, self._hash(body))

    def _hash(self, body: bytes) -> str:
        return hash_of(self.build.encode() or body)

    async def _discovery(self, request: web.Request) -> web.Response:
        return await self.discovery.answer(request, list(self.documents or ()))

    async def _swagger(self, request: web.Request) -> web.Response:
        self._note(request)
        await asyncio.sleep(self.delay)
        if self.swagger_document is None:
            raise web.HTTPNotFound
        return _conditional(request, self.swagger_document)


@asynccontextmanager
async def serving(server: FakeAPIServer) -> AsyncIterator[FakeAPIServer]:
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


def _conditional(request: web.Request, body: bytes, hash: str = "") -> web.Response:
    etag = f'"{hash or hash_of(body)}"'
    if request.headers.get("If-None-Match") == etag:
        return web.Response(status=304, headers={"ETag": etag})
    response = web.Response(body=body, content_type="application/json", headers={"ETag": etag})
    response.enable_compression()
    return response
