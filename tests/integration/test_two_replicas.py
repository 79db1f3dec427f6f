"""Two replicas of a cluster that know different things for a while, and clients whose balancer alternates."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from fakes.apiserver import FakeAPIServer, document, serving
from fakes.cluster import API_SERVICES, CRDS, FakeCluster
from fakes.freezable_way import FreezableWay
from running.cluster_service import (
    APPS,
    WIDGETS,
    accept_definition,
    builtin,
    definition,
    hash_now,
    owner,
    port_of,
    until_ready,
)
from running.service import IMPATIENT, QUICK, Client, backend, service
from specmux_aggregator.config.settings import KubernetesSettings, PollingSettings
from specmux_aggregator.kubernetes.watch import WatchPhase
from specmux_aggregator.model.backend import Backend, BackendName

OLD, NEW = "apis/example.com/v0", "apis/new.example.com/v1"


@asynccontextmanager
async def replica(url: str, polling: PollingSettings = QUICK) -> AsyncIterator[Client]:
    settings = KubernetesSettings(in_cluster=True, service_url="http://127.0.0.1:{port}")
    server = Backend(name=BackendName("kubernetes"), url=url)
    async with service(cluster=server, kubernetes=settings, polling=polling) as client:
        await until_ready(client)
        yield client


async def redirects(first: Client, second: Client, key: str) -> int | None:
    """How many a client meets that has the root of one and asks both by turns; None: it is in no root."""
    url = (await first.paths()).get(key)
    for number in range(20):
        if url is None:
            return None
        status, headers, _ = await (second, first)[number % 2].get(url)
        if status != 301:
            return number
        url = f"/openapi/v3/{key}{headers['Location']}"
    return 20


def is_synced(client: Client) -> bool:
    cluster = client.app.cluster
    assert cluster is not None
    return all(state.phase is WatchPhase.SYNCED for state in cluster.watches.values())


async def test_a_frozen_replica_sends_nobody_in_circles_and_does_not_say_that_it_is_synced() -> None:
    async with FakeCluster({APPS: document(APPS)}) as cluster:
        cluster.put(API_SERVICES, builtin("apps", "v1"))
        accept_definition(cluster, definition("Widget"))
        async with (
            FreezableWay(port_of(cluster)) as way,
            replica(cluster.url) as live,
            replica(way.url, IMPATIENT) as frozen,
        ):
            both = live, frozen
            for client in both:
                await client.until(lambda client=client: owner(client, WIDGETS) == "kubernetes-crds", "built")  # type: ignore[misc]
            assert hash_now(live, WIDGETS) == hash_now(frozen, WIDGETS)
            way.freeze()
            accept_definition(cluster, definition("Widget", description="changed"))
            accept_definition(cluster, definition("Thing", group="new.example.com"))
            await live.until(lambda: hash_now(live, WIDGETS) != hash_now(frozen, WIDGETS), "changed")
            await live.until(lambda: hash_now(live, NEW) is not None, "new")
            seen = set[int | None]()

            async def look() -> None:
                for pair in (both, both[::-1]):
                    for key in (WIDGETS, APPS, NEW):
                        seen.add(await redirects(*pair, key))

            await look()
            await frozen.until(lambda: not is_synced(frozen), "noticed")
            await look()
            way.thaw()
            await frozen.until(lambda: hash_now(frozen, NEW) is not None, "thawed")
            await frozen.until(lambda: hash_now(live, WIDGETS) == hash_now(frozen, WIDGETS), "agreed")
            await frozen.until(lambda: is_synced(frozen), "synced")
            await look()
            assert seen <= {0, 1, None}
            assert 1 in seen
            assert await live.paths() == await frozen.paths()


async def test_a_version_that_was_taken_out_is_published_by_none() -> None:
    """The apiserver keeps it in its root until it is started anew; the first replica saw it go."""
    async with FakeCluster({APPS: document(APPS)}) as cluster:
        cluster.put(API_SERVICES, builtin("apps", "v1"))
        accept_definition(cluster, definition("Widget", "v0", "v1"))
        assert cluster.documents is not None
        cluster.documents[WIDGETS] = document(WIDGETS)
        cluster.documents[OLD] = document(OLD)
        async with replica(cluster.url) as first:
            await first.until(lambda: owner(first, OLD) == "kubernetes-crds", "built")
            cluster.put(CRDS, definition("Widget", "v1"))
            cluster.delete(API_SERVICES, "v0.example.com")
            await first.until(lambda: hash_now(first, OLD) is None, "gone")
            async with replica(cluster.url) as second:
                await second.until(lambda: owner(second, WIDGETS) == "kubernetes-crds", "built")
                assert OLD not in await second.paths()
                assert await first.paths() == await second.paths()


async def test_group_version_that_only_the_other_replica_knows_is_asked_for() -> None:
    new = "apis/new.example.org/v1"
    async with serving(FakeAPIServer({APPS: document(APPS)})) as origin:
        slow = replace(QUICK, interval=600.0)
        async with service(backend("a", origin.url), polling=slow) as late:
            await late.says_ready()
            await asyncio.sleep(QUICK.revalidate_interval)
            origin.documents = {APPS: document(APPS), new: document(new)}
            async with service(backend("a", origin.url)) as other:
                await other.says_ready()
                url = (await other.paths())[new]
            assert new not in await late.paths()
            status, _, body = await late.get(url)
            assert (status, body) == (200, document(new))
            assert (await late.get("/openapi/v3/apis/none.example.org/v1?hash=1"))[0] == 404
