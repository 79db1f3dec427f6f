"""Documents of a cluster are fetched when they are published: an outage costs no reader one."""

from __future__ import annotations

from pathlib import Path

import pytest

from fakes.apiserver import FakeAPIServer, document, serving
from fakes.cluster import FakeCluster
from running.service import backend, service
from specmux_aggregator.config.settings import DocumentSettings, KubernetesSettings, MemorySettings
from specmux_aggregator.documents import prefetch
from specmux_aggregator.model.snapshot import DocumentKey

KEYS = [f"apis/group{number}.example.org/v1" for number in range(6)]
DOCUMENTS = {key: document(key) for key in KEYS}
CLUSTER = KubernetesSettings(context="x", api_services=False, crds=False)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prefetch.DocumentPrefetch.__init__, "__kwdefaults__", {"settle": 0.01})
    monkeypatch.setattr(prefetch, "RETRY", 0.1)


@pytest.mark.parametrize("has_state", [False, True])
async def test_outage_costs_no_document_that_nobody_has_asked_for(tmp_path: Path, has_state: bool) -> None:
    cluster = FakeCluster(dict(DOCUMENTS))
    state = tmp_path if has_state else None
    async with cluster:
        reached = backend("kubernetes", cluster.url)
        async with service(cluster=reached, kubernetes=CLUSTER, state=state) as client:
            await client.says_ready()
            await client.until(lambda: cluster.count("/openapi/v3/") == len(KEYS), "all are fetched")
            await cluster.stop()
            for url in (await client.paths()).values():
                assert (await client.get(url))[0] == 200
        cluster.log.clear()
        if has_state:  # a start in the outage
            async with service(cluster=reached, kubernetes=CLUSTER, state=state) as client:
                await client.says_ready()
                for key, url in (await client.paths()).items():
                    status, _, body = await client.get(url)
                    assert (status, body) == (200, DOCUMENTS[key])


async def test_document_that_cannot_be_had_is_asked_for_again() -> None:
    cluster = FakeCluster(dict(DOCUMENTS))
    cluster.listed, cluster.documents = DOCUMENTS, {KEYS[0]: DOCUMENTS[KEYS[0]]}
    async with cluster, service(cluster=backend("kubernetes", cluster.url), kubernetes=CLUSTER) as client:
        await client.says_ready()
        await client.until(lambda: cluster.count(f"/openapi/v3/{KEYS[1]}") > 1, "asked for again")
        cluster.documents = dict(DOCUMENTS)
        documents, entries = client.app.published.documents, client.app.publisher.current.entries
        keys = [DocumentKey(entry.owner, key, entry.offer.hash) for key, entry in entries.items()]
        await client.until(lambda: all(documents.find_json(key) is not None for key in keys), "all are held")


async def test_backends_of_the_configuration_are_fetched_from_when_somebody_asks() -> None:
    async with serving(FakeAPIServer(dict(DOCUMENTS))) as origin, service(backend("a", origin.url)) as client:
        await client.says_ready()
        assert origin.count("/openapi/v3/") == 0


async def test_no_more_is_fetched_than_fits() -> None:
    async with (
        serving(FakeAPIServer(dict(DOCUMENTS))) as origin,
        service(
            backend("a", origin.url),
            documents=DocumentSettings(prefetch="on"),
            memory=MemorySettings(documents_bytes=2200),
        ) as client,
    ):
        await client.says_ready()
        await client.until(lambda: origin.count("/openapi/v3/") > 0, "some are fetched")
        await client.until(lambda: client.app.published.representations.is_half_full, "half is full")
        assert origin.count("/openapi/v3/") < len(KEYS)
