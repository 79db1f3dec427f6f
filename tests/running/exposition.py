"""What /metrics says once everything that has a metric has happened."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any
from unittest.mock import patch

from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from deadline import DEADLINE
from fakes.apiserver import FakeAPIServer, document, serving, swagger
from fakes.cluster import FakeCluster
from running.service import backend, service
from specmux_aggregator.aggregation import document_checks
from specmux_aggregator.config.settings import DocumentSettings, KubernetesSettings
from specmux_aggregator.model.backend import Backend
from specmux_aggregator.model.snapshot import CheckSummary
from specmux_aggregator.server.acceptors.passing import Acceptors
from specmux_converters.document import Limits
from specmux_converters.group_versions import GroupVersion


def families() -> Iterator[Metric]:
    """Of a running service with backends of every kind, one of them dead, and of acceptors."""
    yield from text_string_to_metric_families(asyncio.run(_scraped()))
    keeper: Any = None
    yield from Acceptors(keeper, lambda: 0).collect()


def found(body: bytes, group_version: GroupVersion, *, limits: Limits) -> CheckSummary:
    """In place of the check, whose process the machine runs when it has nothing else to do."""
    return CheckSummary(errors=1, warnings=0, examples=("made up",))


async def _scraped() -> str:
    one = FakeAPIServer({"apis/apps/v1": document("apis/apps/v1")})
    two = FakeAPIServer(None, swagger("apis/old/v1"))
    three = FakeAPIServer(None, None)
    owned = frozenset({GroupVersion("apis/dead/v1")})
    dead = backend("d", "http://127.0.0.1:1", group_versions=owned)
    with patch.object(document_checks, "_CHECK", found):
        return await _metrics_of(one, two, three, dead)


async def _metrics_of(one: FakeAPIServer, two: FakeAPIServer, three: FakeAPIServer, dead: Backend) -> str:
    async with (
        serving(one),
        serving(two),
        serving(three),
        FakeCluster() as cluster,
        service(
            backend("a", one.url),
            backend("b", two.url),
            backend("c", three.url),
            dead,
            cluster=backend("kubernetes", cluster.url),
            kubernetes=KubernetesSettings(in_cluster=True),
            documents=DocumentSettings(check="warn"),
        ) as client,
    ):
        await client.ready()
        client.app.note_config(error="broken")
        for url in (await client.paths()).values():
            await client.get(url)
        await client.get("/openapi/v3/apis/apps/v1?hash=STALE")
        await client.get("/openapi/v2")
        checks = client.app.document_checks
        async with asyncio.timeout(DEADLINE):
            while checks is None or not checks.known:
                await asyncio.sleep(0.05)
        return (await client.get("/metrics"))[2].decode()
