"""Documents of definitions follow the release of the cluster, also when it is another one."""

from __future__ import annotations

import asyncio
import copy
import json
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from deadline import DEADLINE
from fakes.apiserver import FakeAPIServer, document, serving
from fakes.cluster import API_SERVICES, CRDS, FakeCluster
from running.cluster_service import APPS, WIDGETS, builtin, definition, owner, serves, with_discovery
from running.service import Client, backend, service
from specmux_aggregator.config.settings import ValidationSettings
from specmux_aggregator.kubernetes import shared_crd_parts as templates
from specmux_converters.crd import build
from specmux_converters.group_versions import GroupVersion

META = "io.k8s.apimachinery.pkg.apis.meta.v1."
OBJECT = {"apiVersion": "example.com/v1", "kind": "Widget"}
JUDGING: dict[str, Any] = {"validation": ValidationSettings(enabled=True, timeout=30.0)}
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
    async with asyncio.timeout(DEADLINE):
        while True:
            document = await widgets(client)
            if document["components"]["schemas"][META + "Status"]["description"] == status:
                return document
            await asyncio.sleep(0.02)


async def test_documents_follow_the_clusters_release_and_its_upgrade(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        templates, "FIRST_READ", DEADLINE
    )  # a process has to start, on a machine that is busy
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


LIMITED = {"type": "integer", "format": "int32", "externalDocs": {"url": "https://a.example"}}


def limited() -> dict[str, Any]:
    """A definition that two releases publish in two ways, and judge by two rules."""
    item = definition("Widget")
    schema = item["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"] = {"spec": {"type": "object", "properties": {"size": LIMITED}}}
    return item


NEWER = (
    '299 - "checked by the rules of Kubernetes 1.38, the newest that is known, and from its source alone: '
    'the cluster is v1.38"'
)


async def refuses(client: Client, *, notes: bool = False) -> bool:
    """Whether the service refuses what 1.36 and later refuse. ``notes``: with the note on a newer cluster."""
    body = {**OBJECT, "metadata": {"name": "w"}, "spec": {"size": 1 << 31}}
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"{client.base}/openapi/validate", json=body) as answer,
    ):
        assert answer.status in (200, 422), await answer.text()
        assert answer.headers.getall("Warning", []) == ([NEWER] if notes else [])
        return answer.status == 422


async def until_published(client: Client, key: str) -> None:
    await client.until(lambda: key in client.app.publisher.current.entries, key)


@pytest.mark.parametrize(
    ("told", "documents", "is_newer"),
    [
        ({"gitVersion": "v1.34.4"}, "v1.34.4", False),
        ({"gitVersion": "v1.37.2"}, "v1.37.2", True),
        (403, "v1.34.4", False),
        (403, "unversioned", True),
        ({"gitVersion": "v1.38.0"}, "v1.38.0", True),
        ({"gitVersion": "v1.38.0", "emulationMajor": "1", "emulationMinor": "35"}, "v1.34.4", False),
        ({"gitVersion": "v1.38.0", "emulationMajor": "1", "emulationMinor": "37"}, "v1.37.2", True),
    ],
    ids=["1.34", "1.37", "refused-1.34", "never-told", "later", "emulates-1.35", "emulates-1.37"],
)
async def test_the_release_is_the_clusters_own(told: Any, documents: str, is_newer: bool) -> None:
    """By ``/version``; where that is refused, by its documents; the newest where nothing tells."""
    async with FakeCluster({APPS: release(documents, "of the cluster")}) as cluster:
        with_discovery(cluster)
        if isinstance(told, dict):
            cluster.discovery.version = told
        else:
            cluster.discovery.failing["/version"] = told
        cluster.put(API_SERVICES, builtin("apps", "v1"))
        cluster.put(CRDS, limited())
        async with serves(cluster, settings=JUDGING) as client:
            document = await until_says(client, "of the cluster")
            spec = document["components"]["schemas"]["com.example.v1.Widget"]["properties"]["spec"]
            assert ("externalDocs" in spec["properties"]["size"]) is is_newer
            assert await refuses(client, notes=told == {"gitVersion": "v1.38.0"}) is is_newer


@pytest.mark.parametrize("versions", [("v1.34.4", "v1.37.2"), ("v1.37.2", "v1.34.4")])
async def test_of_servers_of_two_versions_the_newest_judges(versions: tuple[str, str]) -> None:
    """One backend with two servers: the newest owns what both have, and its release is in force."""
    made = build([{**limited(), "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}])
    documents = {WIDGETS: made.json(GroupVersion(WIDGETS))}
    servers = [FakeAPIServer(dict(documents)) for _ in versions]
    for each, version in zip(servers, versions, strict=True):
        each.discovery.version = {"gitVersion": version}
    async with serving(servers[0]), serving(servers[1]):
        urls = tuple(each.url for each in servers)
        async with service(backend("ha", urls[0], urls=urls), **JUDGING) as client:
            await until_published(client, WIDGETS)
            await client.says_ready()
            while json.loads((await client.get("/version"))[2]) != {"gitVersion": "v1.37.2"}:
                await asyncio.sleep(0.02)
            assert await refuses(client)


@pytest.mark.parametrize(("first", "is_newer"), [("v1.34.4", False), ("v1.37.2", True)])
async def test_of_two_backends_the_one_that_answers_version_judges(first: str, is_newer: bool) -> None:
    """The first that is configured, whichever is newer: clients take its ``/version`` for the service's."""
    made = build([{**limited(), "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}])
    one = FakeAPIServer({WIDGETS: made.json(GroupVersion(WIDGETS))})
    other = FakeAPIServer({"apis/other.example.org/v1": document("apis/other.example.org/v1")})
    one.discovery.version = {"gitVersion": first}
    other.discovery.version = {"gitVersion": "v1.37.2" if first == "v1.34.4" else "v1.34.4"}
    async with serving(one), serving(other):
        backends = backend("one", one.url), backend("other", other.url)
        async with service(*backends, **JUDGING) as client:
            await until_published(client, WIDGETS)
            await client.says_ready()
            assert json.loads((await client.get("/version"))[2]) == {"gitVersion": first}
            assert await refuses(client) is is_newer
