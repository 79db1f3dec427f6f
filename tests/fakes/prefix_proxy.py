"""A proxy as people put in front: it takes a path prefix away, and notes what passed."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import aiohttp
from aiohttp import web
from yarl import URL

from fakes.listening import WebServer

HOP_BY_HOP = {"connection", "transfer-encoding", "keep-alive", "host", "content-length"}


@dataclass(frozen=True)
class Passed:
    """One request and its answer."""

    method: str
    target: str
    """Path and query as they went on, without the prefix."""
    status: int
    is_conditional: bool
    size: int
    """Bytes of the answer's body as sent."""


class PrefixProxy:
    """``prefix`` is "" or begins with a slash and ends with none."""

    def __init__(self, target: str, prefix: str = "") -> None:
        self._target = target
        self._prefix = prefix
        self.url = ""
        self.log: list[Passed] = []

    def take(self) -> list[Passed]:
        """What passed since the last call."""
        passed, self.log = self.log, []
        return passed

    async def handle(self, request: web.Request, session: aiohttp.ClientSession) -> web.Response:
        target = request.raw_path
        if not target.startswith(self._prefix + "/"):
            raise web.HTTPNotFound
        target = target[len(self._prefix) :]
        headers = [(name, value) for name, value in request.headers.items() if name.lower() not in HOP_BY_HOP]
        async with session.request(
            request.method,
            URL(self._target + target, encoded=True),
            headers=headers,
            data=await request.read(),
            allow_redirects=False,
        ) as answer:
            body = await answer.read()
        is_conditional = "If-None-Match" in request.headers
        self.log.append(Passed(request.method, target, answer.status, is_conditional, len(body)))
        kept = [(name, value) for name, value in answer.headers.items() if name.lower() not in HOP_BY_HOP]
        return web.Response(status=answer.status, headers=dict(kept), body=body)


@asynccontextmanager
async def proxying(target: str, prefix: str = "") -> AsyncIterator[PrefixProxy]:
    """A proxy on a free port of loopback in front of ``target``."""
    proxy = PrefixProxy(target, prefix)
    async with aiohttp.ClientSession(auto_decompress=False) as session:

        async def handle(request: web.Request) -> web.Response:
            return await proxy.handle(request, session)

        application = web.Application()
        application.router.add_route("*", "/{path:.*}", handle)
        server = WebServer(application)
        proxy.url = f"http://127.0.0.1:{await server.start()}{prefix}"
        try:
            yield proxy
        finally:
            await server.stop()
