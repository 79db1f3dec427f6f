"""The whole service in front of a FakeCluster, what a cluster holds, and what clients see of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from deadline import DEADLINE
from fakes.apiserver import FakeAPIServer
from fakes.cluster import API_SERVICES, CRDS, FakeCluster, api_service
from running.service import Client, service
from specmux_aggregator.config.settings import KubernetesSettings
from specmux_aggregator.model.backend import Backend, BackendName

WIDGETS = "apis/example.com/v1"
APPS, METRICS = "apis/apps/v1", "apis/metrics.k8s.io/v1beta1"

AUTOMANAGED = "kube-aggregator.kubernetes.io/automanaged"


def definition(
    kind: str, *versions: str, group: str = "example.com", description: str = ""
) -> dict[str, Any]:
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "description": description, "properties": {"spec": {"type": "object"}}}
    return {
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural},
            "versions": [
                {"name": name, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
                for name in versions or ("v1",)
            ],
        },
        "status": {"conditions": [{"type": "Established", "status": "True"}]},
    }


def extension(
    server: FakeAPIServer, group: str = "metrics.k8s.io", version: str = "v1beta1"
) -> dict[str, Any]:
    return api_service(group, version, service=("extension", "default"), port=port_of(server))


def builtin(group: str, version: str) -> dict[str, Any]:
    item = api_service(group, version)
    item["metadata"]["labels"] = {AUTOMANAGED: "onstart"}
    return item


def port_of(server: FakeAPIServer) -> int:
    return int(server.url.rpartition(":")[2])


def accept_definition(cluster: FakeCluster, item: dict[str, Any]) -> None:
    """As a cluster does it: the definition, and an APIService for each of its versions."""
    cluster.put(CRDS, item)
    for version in item["spec"]["versions"]:
        made = api_service(
            item["spec"]["group"], version["name"], groupPriorityMinimum=1000, versionPriority=100
        )
        made["metadata"]["labels"] = {AUTOMANAGED: "true"}
        cluster.put(API_SERVICES, made)


def with_discovery(cluster: FakeCluster) -> None:
    """Let it answer /api, /apis and /version by its ``discovery``."""

    async def answer(request: web.Request) -> web.StreamResponse:
        return await cluster.discovery.answer(request, list(cluster.documents or ()))

    for path in ("/api", "/apis", "/version"):
        cluster.answers[path] = answer


@asynccontextmanager
async def serves(
    cluster: FakeCluster,
    *backends: Backend,
    state: Path | None = None,
    settings: dict[str, Any] | None = None,
    **kubernetes: Any,
) -> AsyncIterator[Client]:
    """The service in front of the cluster, as soon as it is ready."""
    options = {"in_cluster": True, "service_url": "http://127.0.0.1:{port}", **kubernetes}
    server = Backend(name=BackendName("kubernetes"), url=cluster.url)
    async with service(
        *backends, state=state, cluster=server, kubernetes=KubernetesSettings(**options), **(settings or {})
    ) as client:
        await until_ready(client)
        yield client


async def until_ready(client: Client) -> None:
    async with asyncio.timeout(DEADLINE):
        while (await client.get("/readyz"))[0] != 200:
            await asyncio.sleep(0.01)


def owner(client: Client, key: str) -> str | None:
    entry = client.app.publisher.current.entries.get(key)  # type: ignore[call-overload]
    return entry.owner if entry else None


def hash_now(client: Client, key: str) -> str | None:
    entry = client.app.publisher.current.entries.get(key)  # type: ignore[call-overload]
    return entry.offer.hash if entry else None


def listed(client: Client) -> set[str]:
    """The group-versions that discovery lists."""
    watch = client.app.discovery
    assert watch is not None
    return {str(item.group_version) for item in watch.index.directory.versions()}
