"""What an answer says of its origin (Cache-Status, RFC 9211), and which requests to backends carry a client's
trace (W3C Trace Context)."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

import pytest

from deadline import DEADLINE
from fakes.apiserver import FakeAPIServer, document, serving, swagger
from fakes.cluster import FakeCluster
from running.service import QUICK, Client, backend, service
from specmux_aggregator.config.settings import AuthSettings, KubernetesSettings

APPS = "apis/apps/v1"
RARELY = replace(QUICK, interval=60.0, revalidate_interval=0.01)
PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


async def status_of(client: Client, target: str, **fields: str) -> tuple[int, str | None]:
    code, headers, _ = await client.get(target, **fields)
    return code, headers.get("Cache-Status")


async def test_cache_status_tells_memory_from_a_backend_that_was_asked() -> None:
    origin = FakeAPIServer({APPS: document(APPS)})
    async with serving(origin), service(backend("a", origin.url)) as client:
        await client.ready()
        target = (await client.paths())[APPS]
        assert await status_of(client, target) == (200, "specmux; fwd=miss")
        for _ in range(4):  # remembered at the third
            assert await status_of(client, target) == (200, "specmux; hit")
        assert await status_of(client, target, Accept="application/cbor") == (200, "specmux; hit")
        etag = (await client.get(target))[1]["ETag"]
        assert await status_of(client, target, If_None_Match=etag) == (304, "specmux; hit")
        for path in ("/openapi/v3", "/apis"):
            assert await status_of(client, path) == (200, "specmux; hit")
        assert await status_of(client, f"/openapi/v3/{APPS}?hash=OTHER") == (301, None)
        assert await status_of(client, "/openapi/v3/apis/none/v1") == (404, None)
        assert await status_of(client, "/livez") == (200, None)
        await origin.stop()
        observations = client.app.publisher
        await client.until(lambda: observations.current.observations["a"].failure is not None)  # type: ignore[index]
        assert await status_of(client, target) == (200, "specmux; hit; detail=stale")


def traces(origin: FakeAPIServer, since: int) -> list[tuple[str, str | None]]:
    fields = [each.get("traceparent") for each in origin.headers]
    return list(zip(origin.log, fields, strict=True))[since:]


async def test_backend_gets_the_trace_of_the_request_that_asks_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    origin = FakeAPIServer({APPS: document(APPS)}, swagger(APPS))
    async with serving(origin), service(backend("a", origin.url), polling=RARELY) as client:
        await client.ready()
        await client.get("/openapi/v3", traceparent=PARENT)
        assert {parent for _, parent in traces(origin, 0)} == {None}  # polls are nobody's

        target = (await client.paths())[APPS]
        before = len(origin.log)
        assert (await client.get(target, traceparent=PARENT))[0] == 200
        assert traces(origin, before) == [(target, PARENT)]

        before = len(origin.log)
        assert (await client.get(f"/openapi/v3/{APPS}?hash=OTHER", traceparent=PARENT))[0] == 301
        assert ("/openapi/v3", PARENT) in traces(origin, before)

        before = len(origin.log)
        assert (await client.get("/openapi/v2", traceparent=PARENT))[0] == 200
        assert traces(origin, before)[-1] == ("/openapi/v2", PARENT)

        await asyncio.sleep(0.02)
        before = len(origin.log)
        assert (await client.get(f"/openapi/v3/{APPS}?hash=OTHER", traceparent=f"{PARENT}\u00e9"))[0] == 301
        assert [parent for _, parent in traces(origin, before)] == [None]
    assert PARENT not in caplog.text


async def test_reviews_of_a_caller_carry_its_trace() -> None:
    cluster = FakeCluster({APPS: document(APPS)}, swagger(APPS))
    cluster.review_token = lambda token: {"user": {"username": token}, "authenticated": True}
    cluster.allows = lambda spec: True
    reviewing = KubernetesSettings(in_cluster=True, api_services=False, crds=False, apiserver=False)
    async with cluster:
        source = backend("a", cluster.url)
        auth = AuthSettings(mode="kubernetes", cache_seconds=0.0)
        async with (
            asyncio.timeout(DEADLINE),
            service(source, cluster=source, auth=auth, kubernetes=reviewing) as client,
        ):
            await client.ready()
            fields = {"Authorization": "Bearer alice", "traceparent": PARENT}
            while (await client.get("/openapi/v3", **fields))[0] != 200:
                await asyncio.sleep(0.02)
            assert PARENT in cluster.review_parents
            assert set(cluster.review_parents) <= {PARENT, None}
