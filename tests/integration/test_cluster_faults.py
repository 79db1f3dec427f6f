"""A cluster that misbehaves, or changes in the worst moment: nothing is lost, and no neighbour pays."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from cluster_service import (
    APPS,
    METRICS,
    accept_definition,
    builtin,
    definition,
    extension,
    listed,
    serves,
    with_discovery,
)
from fake_apiserver import FakeAPIServer, document, serving
from fake_cluster import API_SERVICES, FakeCluster
from specmux_aggregator.discovery.accept import AGGREGATED

V2 = AGGREGATED[0].content_type


def run(scenario: Callable[[FakeCluster], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with FakeCluster({APPS: document(APPS)}) as cluster:
            with_discovery(cluster)
            cluster.put(API_SERVICES, builtin("apps", "v1"))
            await scenario(cluster)

    asyncio.run(main())


def test_discovery_loses_nothing_while_the_cluster_changes() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        async with serving(FakeAPIServer({METRICS: document(METRICS)})) as metrics, serves(cluster) as client:
            cluster.put(API_SERVICES, extension(metrics))
            await client.until(lambda: {APPS, METRICS} <= listed(client), "listed")
            cluster.discovery.delay = 0.3
            lost: list[set[str]] = []

            async def look() -> None:
                while True:
                    lost.append({APPS, METRICS} - listed(client))
                    await asyncio.sleep(0.002)

            looking = asyncio.create_task(look())
            for number in range(5):
                accept_definition(cluster, definition(f"Kind{number}", group=f"g{number}.example.com"))
                await asyncio.sleep(0.1)
            raised = extension(metrics)
            raised["spec"]["groupPriorityMinimum"] = 3000
            cluster.put(API_SERVICES, raised)
            await client.until(lambda: "apis/g4.example.com/v1" in listed(client), "all listed")
            looking.cancel()
            assert len(lost) > 50
            assert not any(lost), [missing for missing in lost if missing][:3]

    run(scenario)
