"""The part of an apiserver that says who callers are and what they may: TokenReview and SubjectAccessReview.

A real HTTP server on loopback, in a thread of its own; tests change its mind while it runs.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from aiohttp import web

from deadline import DEADLINE
from fakes.listening import WebServer
from specmux_aggregator.model.backend import Backend, BackendName

TOKEN: Final = "tokenreviews"
ACCESS: Final = "subjectaccessreviews"


class FakeReviewer:
    """``users``: by token, the ``user`` of its TokenReview. ``audiences``: of every token that has one.

    ``allows`` decides about a user's name and a path. ``broken``: by kind, the status or the very object that
    is answered in place of a review. ``log``: the specs seen, by kind.
    """

    def __init__(self) -> None:
        self.users: dict[str, dict[str, Any]] = {}
        self.audiences: list[str] | None = None
        self.allows: Callable[[str, str], bool] = lambda user, path: True
        self.broken: dict[str, int | dict[str, Any]] = {}
        self.delay: dict[str, float] = {}
        self.log: dict[str, list[dict[str, Any]]] = {TOKEN: [], ACCESS: []}
        self.port = 0
        self._server: WebServer | None = None

    @property
    def backend(self) -> Backend:
        return Backend(name=BackendName("kubernetes"), url=f"http://127.0.0.1:{self.port}")

    def know(self, token: str, name: str, **fields: Any) -> None:
        self.users[token] = {"username": name, "groups": ["system:authenticated"], **fields}

    def count(self, kind: str, **wanted: str) -> int:
        """Reviews of a token or of a user; those of the service's own trials have others."""
        return sum(all(spec.get(key) == value for key, value in wanted.items()) for spec in self.log[kind])

    async def start(self) -> None:
        """Open the port; the same one after ``stop``."""
        application = web.Application()
        application.router.add_post(f"/apis/authentication.k8s.io/v1/{TOKEN}", self._token)
        application.router.add_post(f"/apis/authorization.k8s.io/v1/{ACCESS}", self._access)
        self._server = WebServer(application, shutdown_timeout=0.1)
        self.port = await self._server.start(self.port)

    async def stop(self) -> None:
        if self._server is not None:
            await self._server.stop()
            self._server = None

    async def _token(self, request: web.Request) -> web.Response:
        spec = await self._spec(request, TOKEN)
        user = self.users.get(spec["token"])
        if user is None:
            return self._answer(TOKEN, {"authenticated": False})
        status: dict[str, Any] = {"authenticated": True, "user": user}
        if self.audiences is not None:
            status["audiences"] = [item for item in spec.get("audiences", []) if item in self.audiences]
            status["authenticated"] = bool(status["audiences"])
        return self._answer(TOKEN, status)

    async def _access(self, request: web.Request) -> web.Response:
        spec = await self._spec(request, ACCESS)
        return self._answer(
            ACCESS, {"allowed": self.allows(spec["user"], spec["nonResourceAttributes"]["path"])}
        )

    async def _spec(self, request: web.Request, kind: str) -> dict[str, Any]:
        review = await request.json()
        assert review["kind"].lower() + "s" == kind
        self.log[kind].append(review["spec"])
        await asyncio.sleep(self.delay.get(kind, 0.0))
        return dict(review["spec"])

    def _answer(self, kind: str, status: dict[str, Any]) -> web.Response:
        broken = self.broken.get(kind)
        if isinstance(broken, int):
            return web.Response(status=broken, text="the token was s3cret")
        return web.json_response(broken or {"status": status}, status=201)


class Reviewing:
    """A fake that runs."""

    def __init__(self, fake: FakeReviewer, loop: asyncio.AbstractEventLoop) -> None:
        self.fake = fake
        self._loop = loop

    def start(self) -> None:
        asyncio.run_coroutine_threadsafe(self.fake.start(), self._loop).result(DEADLINE)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self.fake.stop(), self._loop).result(DEADLINE)


@contextmanager
def reviewing() -> Iterator[Reviewing]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    running = Reviewing(FakeReviewer(), loop)
    try:
        running.start()
        yield running
    finally:
        running.stop()
        loop.call_soon_threadsafe(loop.stop)
        thread.join(DEADLINE)
        loop.close()
