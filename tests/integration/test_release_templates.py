"""Documents of definitions follow the release of the cluster, also when it is another one."""

from __future__ import annotations

import asyncio
import copy
import json
from pathlib import Path
from typing import Any

from fakes.cluster import API_SERVICES, CRDS, FakeCluster
from running.cluster_service import APPS, WIDGETS, builtin, definition, owner, serves, with_discovery
from running.service import Client
from specmux_converters.crd import build
from specmux_converters.group_versions import GroupVersion

META = "io.k8s.apimachinery.pkg.apis.meta.v1."
SELECTABLE = "x-kubernetes-selectable-fields"


def scaled() -> dict[str, Any]:
    item = copy.deepcopy(definition("Scaled", group="apps"))
    item |= {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    scale = {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}
    item["spec"]["versions"][0]["subresources"] = {"scale": scale}
    return item


def release(version: str, status: str) -> bytes:
    """A built-in document of a release; ``status``: what it says of Status."""
    (document,) = copy.deepcopy(dict(build([scaled()]).documents)).values()
    document["info"] = {"title": "Kubernetes", "version": version}
    document["components"]["schemas"][META + "Status"]["description"] = status
    return json.dumps(document).encode()


async def widgets(client: Client) -> dict[str, Any]:
    for _ in range(10):
        status, _, body = await client.get((await client.paths())[WIDGETS])
        if status != 301:  # it changed behind the root that was read
            break
    assert status == 200
    return dict(json.loads(body))


async def until_says(client: Client, status: str) -> dict[str, Any]:
    async with asyncio.timeout(20):
        while True:
            document = await widgets(client)
            if document["components"]["schemas"][META + "Status"]["description"] == status:
                return document
            await asyncio.sleep(0.02)


async def test_documents_follow_the_clusters_release_and_its_upgrade(tmp_path: Path) -> None:
    async with FakeCluster({APPS: release("1.32", "as 1.32 says")}) as cluster:
        with_discovery(cluster)
        cluster.put(API_SERVICES, builtin("apps", "v1"))
        cluster.put(CRDS, definition("Widget"))
        async with serves(cluster, state=tmp_path) as client:
            # Not first as another release has them: nobody is told of a change that there is not.
            first = (await client.paths())[WIDGETS]
            document = await until_says(client, "as 1.32 says")
            assert (await client.paths())[WIDGETS] == first
            assert document["components"]["schemas"]["com.example.v1.Widget"][SELECTABLE] == []
            assert cluster.documents is not None
            cluster.documents[APPS] = release("1.36", "as 1.36 says")
            document = await until_says(client, "as 1.36 says")
            assert SELECTABLE not in document["components"]["schemas"]["com.example.v1.Widget"]
        await cluster.stop()
        async with serves(cluster, state=tmp_path) as client:
            assert owner(client, WIDGETS) == "kubernetes-crds"
            await until_says(client, "as 1.36 says")


async def test_cluster_whose_documents_have_no_templates_gets_the_newest_that_are_known() -> None:
    async with FakeCluster({APPS: b'{"openapi": "3.0.0", "info": {}, "paths": {}}'}) as cluster:
        cluster.put(CRDS, definition("Widget"))
        async with serves(cluster) as client:
            item = {**definition("Widget"), "apiVersion": "apiextensions.k8s.io/v1"}
            item["kind"] = "CustomResourceDefinition"
            assert await widgets(client) == build([item]).documents[GroupVersion(WIDGETS)]
