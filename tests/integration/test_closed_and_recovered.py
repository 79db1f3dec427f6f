"""Extension apiservers that refuse anonymous requests, and backends that are back and not waited for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

from aiohttp import web

from fakes.apiserver import FakeAPIServer, document, hash_of, serving
from fakes.cluster import API_SERVICES, FakeCluster
from running.cluster_service import APPS, METRICS, builtin, extension, hash_now, owner, serves
from running.service import QUICK, Client, backend, service
from specmux_cache.access.server_access import Credentials

NAME = "v1beta1.metrics.k8s.io"
SLOW = replace(QUICK, backoff_min=600.0, backoff_max=600.0)
"""Whoever fails is left alone for longer than a test waits."""


class Guarded(FakeAPIServer):
    """Lets in whoever shows one of the tokens; None: everybody."""

    def __init__(self, documents: dict[str, bytes], tokens: set[str] | None) -> None:
        super().__init__(documents)
        self.tokens = tokens

    def _refuse(self, request: web.Request) -> None:
        shown = request.headers.get("Authorization", "").removeprefix("Bearer ")
        if self.tokens is not None and shown not in self.tokens:
            raise web.HTTPForbidden if not shown else web.HTTPUnauthorized

    async def _root(self, request: web.Request) -> web.Response:
        self._refuse(request)
        return await super()._root(request)

    async def _discovery(self, request: web.Request) -> web.Response:
        self._refuse(request)
        return await super()._discovery(request)


def run(scenario: Callable[[FakeCluster], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with FakeCluster({APPS: document(APPS), METRICS: document(METRICS)}) as cluster:
            cluster.put(API_SERVICES, builtin("apps", "v1"))
            await scenario(cluster)

    asyncio.run(main())


async def told(client: Client) -> tuple[str, str]:
    state = (await client.status())["backends"][NAME]["state"]
    return state, (await client.get("/metrics"))[2].decode()


def test_closed_extension_apiserver_is_no_outage_and_the_apiserver_stands_in() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        async with serving(Guarded({METRICS: document(METRICS, "own")}, set())) as metrics:
            cluster.put(API_SERVICES, extension(metrics))
            async with serves(cluster) as client:
                assert owner(client, METRICS) == "kubernetes"
                state, exposed = await told(client)
                assert state == "closed"
                assert f'specmux_backend_up{{backend="{NAME}"}}' not in exposed
                assert f'specmux_backend_closed{{backend="{NAME}"}} 1.0' in exposed
                assert f'aggregator_unavailable_apiservice{{name="{NAME}"}} 0.0' in exposed
                metrics.tokens = None  # type: ignore[attr-defined]
                await client.until(lambda: owner(client, METRICS) == NAME, "opened")
                state, exposed = await told(client)
                assert (state, f'specmux_backend_up{{backend="{NAME}"}} 1.0' in exposed) == ("up", True)
                # What it was known to have before it was closed gives way to what the apiserver knows now.
                metrics.tokens = set()  # type: ignore[attr-defined]
                await client.until(lambda: owner(client, METRICS) == "kubernetes", "closed again")
                assert (await client.status())["conflicts"] == []

    run(scenario)


def test_refusal_of_credentials_that_are_shown_is_an_outage(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("wrong")

    async def scenario(cluster: FakeCluster) -> None:
        async with serving(Guarded({METRICS: document(METRICS)}, {"right"})) as metrics:
            cluster.put(API_SERVICES, extension(metrics))
            async with serves(cluster, service_token_file=tmp_path / "token") as client:
                state, exposed = await told(client)
                assert state == "failed"
                assert f'specmux_backend_up{{backend="{NAME}"}} 0.0' in exposed

    run(scenario)


def test_available_condition_wakes_a_waiting_backend() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        metrics = FakeAPIServer({METRICS: document(METRICS, "own")})
        await metrics.start()
        away = extension(metrics)
        away["status"]["conditions"][0] |= {"status": "False", "reason": "FailedDiscoveryCheck"}
        await metrics.stop()
        cluster.put(API_SERVICES, away)
        async with serves(cluster, settings={"polling": SLOW}) as client:
            assert owner(client, METRICS) == "kubernetes"
            await metrics.start()
            try:
                cluster.put(API_SERVICES, extension(metrics))
                await client.until(lambda: owner(client, METRICS) == NAME, "woken")
            finally:
                await metrics.stop()

    run(scenario)


def test_apiserver_that_is_back_is_looked_at_at_once() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        polling = replace(QUICK, interval=600.0, backoff_min=600.0, backoff_max=600.0)
        async with serves(cluster, settings={"polling": polling}) as client:
            await cluster.stop()
            assert client.app.cluster is not None
            source = client.app.cluster
            await client.until(lambda: any(state.failure for state in source.watches.values()), "away")
            refresher = client.app.backends.refresher("kubernetes")  # type: ignore[arg-type]
            assert refresher is not None
            refresher.poke()
            await client.until(lambda: refresher.observation.failure is not None, "seen to be away")
            assert cluster.documents is not None
            cluster.documents[APPS] = document(APPS, "changed meanwhile")
            await cluster.start()
            changed = hash_of(document(APPS, "changed meanwhile"))
            await client.until(lambda: hash_now(client, APPS) == changed, "looked at")

    run(scenario)


async def test_token_that_is_exchanged_wakes_a_waiting_backend(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")

    async with serving(Guarded({APPS: document(APPS)}, {"new"})) as server:
        mine = backend("mine", server.url, credentials=Credentials(token_file=token))
        async with service(mine, polling=SLOW) as client:
            await client.ready()
            assert owner(client, APPS) is None
            await asyncio.sleep(1.2)
            token.write_text("new")
            await client.until(lambda: owner(client, APPS) == "mine", "woken")
