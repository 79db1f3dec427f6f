"""The whole service inside a test's event loop, and a client for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import orjson
from multidict import CIMultiDictProxy
from yarl import URL

from deadline import DEADLINE
from specmux_aggregator.app import App
from specmux_aggregator.config.settings import ListenSettings, PollingSettings, Settings, StateSettings
from specmux_aggregator.documents.archive import open_state
from specmux_aggregator.kubernetes.watch import Timing
from specmux_aggregator.model.backend import Backend, BackendKind, BackendName

QUICK = PollingSettings(
    interval=0.1,
    jitter=0.0,
    connect_timeout=DEADLINE,
    idle_timeout=DEADLINE,
    total_timeout=DEADLINE,
    backoff_min=0.05,
    backoff_max=0.1,
    removal_grace=0.1,
    revalidate_interval=0.2,
    v3_probe_interval=0.3,
)
"""Asks again at once, and waits for an answer as long as a busy machine takes."""
IMPATIENT = replace(QUICK, idle_timeout=2.0, total_timeout=5.0)
"""For backends that say nothing."""
QUICK_WATCH = Timing(
    standing=0.1,
    backoff_min=0.02,
    backoff_max=0.1,
    silent_max=0.5,
    ask_again=0.2,
    settled=0.1,
    refused_for=0.3,
)


def backend(name: str, url: str = "", **fields: Any) -> Backend:
    return Backend(name=BackendName(name), url=url, **fields)


def directory(name: str, path: Path, **fields: Any) -> Backend:
    return Backend(name=BackendName(name), kind=BackendKind.DIRECTORY, directory=path, **fields)


class Client:
    """Asks one running service; every call returns (status, headers, body as sent)."""

    def __init__(self, app: App, base: str, session: aiohttp.ClientSession) -> None:
        self.app = app
        self.base = base
        self._session = session

    async def get(
        self, target: str, *, method: str = "GET", **headers: str
    ) -> tuple[int, CIMultiDictProxy[str], bytes]:
        fields = {name.replace("_", "-"): value for name, value in headers.items()}
        fields.setdefault("Accept-Encoding", "identity")
        async with self._session.request(
            method, URL(self.base + target, encoded=True), headers=fields, allow_redirects=False
        ) as response:
            return response.status, response.headers, await response.read()

    async def paths(self) -> dict[str, str]:
        """Discovery key → hash URL."""
        status, _, body = await self.get("/openapi/v3")
        assert status == 200
        return {key: item["serverRelativeURL"] for key, item in orjson.loads(body)["paths"].items()}

    async def status(self) -> dict[str, Any]:
        _, _, body = await self.get("/status")
        return dict(orjson.loads(body))

    async def until(self, is_so: Callable[[], bool], what: str = "") -> None:
        try:
            async with asyncio.timeout(DEADLINE):
                while not is_so():
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise AssertionError(f"never came true: {what or is_so}") from None

    async def says_ready(self) -> None:
        """As ``ready``, and discovery too: what /readyz waits for."""
        async with asyncio.timeout(DEADLINE):
            while (await self.get("/readyz"))[0] != 200:
                await asyncio.sleep(0.02)

    async def ready(self) -> None:
        """Every backend has been heard, or has failed, once."""
        snapshot = self.app.publisher
        await self.until(
            lambda: all(item.attempted for item in snapshot.current.observations.values()), "ready"
        )


@asynccontextmanager
async def service(
    *backends: Backend, state: Path | None = None, cluster: Backend | None = None, **settings: Any
) -> AsyncIterator[Client]:
    """A service on a free port of loopback, stopped when the context ends."""
    made = Settings(
        listen=ListenSettings(port=0, shutdown_timeout=1.0),
        polling=QUICK,
        state=StateSettings(directory=state),
        backends=backends,
    )
    made = replace(made, **settings)
    app = App(made, await open_state(made), cluster=cluster, watch_timing=QUICK_WATCH)
    host, port = await app.start()
    try:
        async with aiohttp.ClientSession(auto_decompress=False) as session:
            yield Client(app, f"http://{host}:{port}", session)
    finally:
        await app.stop()
