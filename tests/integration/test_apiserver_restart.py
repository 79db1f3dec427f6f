"""An apiserver that starts: it refuses everybody, then publishes half of what it has. Nothing that exists is
ever missing from the root or from discovery."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from aiohttp import web

from deadline import DEADLINE
from fakes.apiserver import FakeAPIServer, document, serving
from fakes.cluster import API_SERVICES, CRDS, FakeCluster
from running.cluster_service import (
    APPS,
    METRICS,
    WIDGETS,
    accept_definition,
    builtin,
    definition,
    extension,
    listed,
    owner,
    serves,
    with_discovery,
)
from running.service import QUICK, Client
from specmux_aggregator.kubernetes.watch import Timing

BATCH, GADGETS = "apis/batch/v1", "apis/gadgets.example.com/v1"
GROUP = "apis/apps"
"""The document of a group, which no APIService names."""
EVERYTHING = {APPS, BATCH, METRICS, WIDGETS, GADGETS, GROUP}
REFUSED_FOR = 0.6  # seconds
PATIENT = Timing(standing=0.1, backoff_min=0.02, backoff_max=0.1, ask_again=0.2, settled=0.1)


@asynccontextmanager
async def world() -> AsyncIterator[FakeCluster]:
    """A cluster with built-in groups, two definitions and an extension apiserver."""
    native = {key: document(key) for key in (APPS, BATCH, METRICS, WIDGETS, GADGETS, GROUP)}
    async with (
        serving(FakeAPIServer({METRICS: document(METRICS, "its own")})) as metrics,
        FakeCluster(native) as cluster,
    ):
        with_discovery(cluster)
        for group in ("apps", "batch"):
            cluster.put(API_SERVICES, builtin(group, "v1"))
        cluster.put(API_SERVICES, extension(metrics))
        accept_definition(cluster, definition("Widget"))
        accept_definition(cluster, definition("Gadget", group="gadgets.example.com"))
        yield cluster


async def restart(cluster: FakeCluster) -> None:
    """Away, then refusing everybody, then publishing more and more."""
    whole = cluster.documents
    assert whole is not None
    await cluster.stop()
    await asyncio.sleep(0.15)

    async def refuse(request: web.Request) -> web.Response:
        return web.json_response({"kind": "Status", "code": 403}, status=403)

    refused = ("/openapi/v3", "/api", "/apis", "/version", CRDS, API_SERVICES)
    answers = dict(cluster.answers)
    cluster.answers.update(dict.fromkeys(refused, refuse))
    await cluster.start()
    await asyncio.sleep(REFUSED_FOR)
    cluster.answers.clear()
    cluster.answers.update(answers)
    for published in ({APPS}, {APPS, WIDGETS}):
        cluster.documents = {key: whole[key] for key in published}
        await asyncio.sleep(0.3)
    cluster.documents = whole


async def missing_during(client: Client, upheaval: asyncio.Task[None]) -> list[set[str]]:
    """What the root or discovery lacked at any moment until the upheaval was over, and a while after it."""
    found: list[set[str]] = []
    after = 0
    while after < 100:
        lacking = EVERYTHING - set(await client.paths())
        unlisted = EVERYTHING - {GROUP} - listed(client)
        found += [each for each in (lacking, unlisted) if each]
        await asyncio.sleep(0.005)
        after += upheaval.done()
    await upheaval
    return found


@pytest.mark.parametrize("times", [3])
async def test_restart_takes_nothing_away(times: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("running.service.QUICK_WATCH", PATIENT)
    polling = replace(QUICK, removal_grace=DEADLINE)

    async with world() as cluster, serves(cluster, settings={"polling": polling}) as client:
        await client.until(lambda: EVERYTHING - {GROUP} <= listed(client), "listed")
        assert set(await client.paths()) == EVERYTHING
        assert owner(client, WIDGETS) == "kubernetes-crds"
        for _ in range(times):
            missing = await missing_during(client, asyncio.create_task(restart(cluster)))
            assert missing == []
            await client.until(lambda: cluster.open_watches(CRDS) == 1, "watched again")
        assert owner(client, WIDGETS) == "kubernetes-crds"
        assert owner(client, METRICS) == "v1beta1.metrics.k8s.io"
        # What is deleted is gone as soon as ever.
        cluster.delete(CRDS, "gadgets.gadgets.example.com")
        await client.until(lambda: owner(client, GADGETS) is None, "deleted")
        await client.until(lambda: GADGETS not in listed(client), "deleted")
        # Its own APIServices are what one server of it says; the root decides.
        cluster.delete(API_SERVICES, "v1.batch")
        await asyncio.sleep(1.0)
        assert owner(client, BATCH) is not None


async def test_service_that_starts_with_its_apiserver_has_what_an_earlier_run_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("running.service.QUICK_WATCH", PATIENT)
    polling = replace(QUICK, removal_grace=DEADLINE)

    async with world() as cluster:
        async with serves(cluster, state=tmp_path, settings={"polling": polling}) as client:
            await client.until(lambda: set(client.app.publisher.current.entries) == EVERYTHING, "all")
            await client.until(lambda: owner(client, WIDGETS) == "kubernetes-crds", "built")
        restarting = asyncio.create_task(restart(cluster))
        async with serves(cluster, state=tmp_path, settings={"polling": polling}) as client:
            assert set(await client.paths()) == EVERYTHING
            assert owner(client, WIDGETS) == "kubernetes-crds"
            await restarting
            await client.until(lambda: cluster.open_watches(CRDS) == 1, "watched")
            assert set(await client.paths()) == EVERYTHING
