"""A backend with several servers of several versions: every listed document is there, and nothing flaps."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any
from urllib.parse import urljoin

import orjson
import pytest
from click.testing import CliRunner

from fakes.apiserver import FakeAPIServer, document, serving
from fakes.balanced import AlternatingServer, Balancer, balanced
from fakes.cluster import API_SERVICES, ENDPOINT_SLICES, FakeCluster, api_service
from running.cluster_service import serves
from running.service import IMPATIENT, QUICK, Client, backend, service
from specmux_aggregator.cli import main
from specmux_aggregator.config.settings import KubernetesSettings

A, OLD, NEW = "apis/a.example.org/v1", "apis/old.example.org/v1", "apis/new.example.org/v1"
BEFORE = {A: document(A, "1"), OLD: document(OLD)}
AFTER = {A: document(A, "2"), NEW: document(NEW)}

AGGREGATED = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"


def server(documents: dict[str, bytes], version: str | None = None) -> FakeAPIServer:
    made = FakeAPIServer(dict(documents))
    if version is not None:
        made.discovery.version = {"gitVersion": version}
    return made


def endpoint_slice(name: str, url: str) -> dict[str, Any]:
    host, _, port = url.removeprefix("http://").partition(":")
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"kubernetes.io/service-name": "kubernetes"},
        },
        "addressType": "IPv4",
        "endpoints": [{"addresses": [host], "conditions": {"ready": True}}],
        "ports": [{"name": "https", "port": int(port)}],
    }


async def backend_status(client: Client, name: str) -> dict[str, Any]:
    shown: dict[str, Any] = (await client.status())["backends"][name]
    return shown


async def metrics(client: Client) -> str:
    return (await client.get("/metrics"))[2].decode()


async def listed(client: Client, accept: str) -> set[str]:
    status, _, body = await client.get("/apis", Accept=accept)
    items = orjson.loads(body)["items"] if status == 200 else ()  # 503 while nothing is known
    return {
        f"apis/{item['metadata']['name']}/{version['version']}"
        for item in items
        for version in item["versions"]
    }


async def until_listed(client: Client, accept: str, keys: set[str]) -> None:
    while await listed(client, accept) != keys:
        await asyncio.sleep(0.02)


async def published(client: Client) -> dict[str, Any]:
    status, _, body = await client.get("/openapi/v3")
    while status == 503:  # nothing is known yet
        await asyncio.sleep(0.02)
        status, _, body = await client.get("/openapi/v3")
    assert status == 200
    return {key: entry["serverRelativeURL"] for key, entry in orjson.loads(body)["paths"].items()}


async def until_published(client: Client, keys: set[str]) -> dict[str, Any]:
    while True:
        paths = await published(client)
        if paths.keys() == keys:
            return paths
        await asyncio.sleep(0.02)


async def read_all(client: Client, rounds: int) -> list[tuple[str, int]]:
    """Roots and their documents, one round after the other; what was not 200. No group-version goes.

    The root may change between the answer that names a URL and the request for it: that URL then
    redirects to the one of the newer root.
    """
    faults: list[tuple[str, int]] = []
    roots: list[dict[str, Any]] = []
    for _ in range(rounds):
        paths = await published(client)
        if not roots or roots[-1] != paths:
            roots.append(paths)
        for key, url in paths.items():
            status, headers, body = await client.get(url)
            if status == 301:
                newer = (await published(client))[key]
                assert newer != url, "a URL of the root redirects"
                assert urljoin(url, headers["Location"]) == f"{newer}&redirected=1"
                status, _, body = await client.get(urljoin(url, headers["Location"]))
            if status != 200 or orjson.loads(body)["openapi"] != "3.0.0":
                faults.append((key, status))
        await asyncio.sleep(0.01)
    assert len(roots) <= 2, "at most one change after the first root"
    assert all(before.keys() <= after.keys() for before, after in pairwise(roots))
    return faults


async def test_documents_of_servers_behind_a_balancer_of_connections() -> None:
    async with (
        balanced(server(BEFORE), server(AFTER)) as balancer,
        service(backend("lb", balancer.url)) as client,
    ):
        assert await read_all(client, 100) == []
        await until_published(client, {A, OLD, NEW})
        assert await read_all(client, 100) == []
        status = orjson.loads((await client.get("/status"))[2])["backends"]["lb"]["servers"]
        assert len(status["servers"]) == 2
        assert "on one of them" in status["summary"]


async def test_release_that_appears_behind_a_balancer_is_noticed_though_connections_stay() -> None:
    old, new = server(BEFORE, "v1.34.4"), server(AFTER, "v1.37.2")
    async with balanced(old, new) as balancer:
        balancer.servers = [old]
        async with service(backend("lb", balancer.url)) as client:
            await until_published(client, {A, OLD})
            balancer.servers = [old, new]
            paths = await until_published(client, {A, OLD, NEW})
            assert (await client.get(paths[A]))[2] == AFTER[A]
            assert await read_all(client, 20) == []
            summary = (await backend_status(client, "lb"))["servers"]["summary"]
            assert summary.startswith("2 servers: 1 × v1.34.4, 1 × v1.37.2; ")


async def test_documents_of_servers_behind_a_balancer_of_requests() -> None:
    async with (
        serving(AlternatingServer([BEFORE, AFTER])) as balancer,
        service(backend("lb", balancer.url)) as client,
    ):
        await until_published(client, {A, OLD, NEW})
        assert await read_all(client, 100) == []


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
async def test_newest_release_of_listed_servers_wins_in_any_order(order: Sequence[int]) -> None:
    servers = server(BEFORE, "v1.34.4"), server(AFTER, "v1.37.2")
    async with serving(servers[0]), serving(servers[1]):
        urls = tuple(servers[each].url for each in order)
        async with service(backend("ha", urls[0], urls=urls)) as client:
            paths = await until_published(client, {A, OLD, NEW})
            assert (await client.get(paths[A]))[2] == AFTER[A]
            assert await read_all(client, 20) == []
            groups = orjson.loads((await client.get("/apis"))[2])["groups"]
            assert {group["name"] for group in groups} == {key.split("/")[1] for key in (A, OLD, NEW)}


async def test_listed_server_that_dies_is_said_and_noticed_by_no_reader() -> None:
    servers = [server(BEFORE, "v1.37.2"), server(BEFORE, "v1.37.2"), server(BEFORE, "v1.37.2")]
    async with serving(servers[0]), serving(servers[1]), serving(servers[2]):
        urls = tuple(each.url for each in servers)
        async with service(backend("ha", urls[0], urls=urls)) as client:
            await until_published(client, {A, OLD})
            await servers[0].stop()
            servers[1].documents = servers[2].documents = dict(AFTER) | {OLD: BEFORE[OLD]}
            await until_published(client, {A, OLD, NEW})
            assert await read_all(client, 20) == []
            shown = orjson.loads((await client.get("/status"))[2])["backends"]["ha"]
            assert shown["state"] == "up"
            assert any(urls[0] in note for note in shown["notes"])


@pytest.mark.long
async def test_server_that_hangs_among_three_is_said_and_noticed_by_no_reader() -> None:
    servers = [server(AFTER, "v1.37.2"), server(AFTER, "v1.37.2"), server(AFTER, "v1.37.2")]
    async with serving(servers[0]), serving(servers[1]), serving(servers[2]):
        urls = tuple(each.url for each in servers)
        async with service(backend("ha", urls[0], urls=urls), polling=IMPATIENT) as client:
            await until_published(client, {A, NEW})
            servers[0].delay = 30.0
            assert await read_all(client, 5) == []  # documents that nobody has asked for before
            failed: list[dict[str, Any]] = []
            while not failed:
                shown = await backend_status(client, "ha")
                failed = [each for each in shown["servers"]["servers"] if each["state"] == "failed"]
                assert await read_all(client, 1) == []
            assert [(each["name"], each["error"]["cause"]) for each in failed] == [(urls[0], "timeout")]
            assert shown["state"] == "up"
            assert "1 of them fails" in shown["servers"]["summary"]
            assert 'specmux_backend_servers_failing{backend="ha"} 1.0' in await metrics(client)


async def test_each_address_of_a_name_is_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    servers = [server(BEFORE, "v1.36.2"), server(AFTER, "v1.37.0")]
    servers[1].host = "127.0.0.2"
    async with serving(servers[0]):
        servers[1]._port = port = servers[0]._port
        look_up = socket.getaddrinfo

        def resolved(host: Any, *rest: Any, **more: Any) -> Any:
            if host != "ha.example.org":
                return look_up(host, *rest, **more)
            kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
            return [(*kind, (address, port)) for address in ("127.0.0.1", "127.0.0.2")]

        monkeypatch.setattr(socket, "getaddrinfo", resolved)
        async with serving(servers[1]), service(backend("ha", f"http://ha.example.org:{port}")) as client:
            paths = await until_published(client, {A, OLD, NEW})
            assert (await client.get(paths[A]))[2] == AFTER[A]
            assert await read_all(client, 20) == []
            shown = (await backend_status(client, "ha"))["servers"]
            assert [each["name"] for each in shown["servers"]] == [f"127.0.0.2:{port}", f"127.0.0.1:{port}"]
            assert shown["summary"].startswith("2 servers: 1 × v1.36.2, 1 × v1.37.0; ")
            assert servers[0].headers[-1]["Host"] == f"ha.example.org:{port}"  # as its certificate would say


async def test_endpoint_slices_name_the_apiservers() -> None:
    cluster, peer = FakeCluster(dict(BEFORE)), server(AFTER, "v1.37.0")
    cluster.pages["/version"] = b'{"gitVersion": "v1.36.2"}'
    async with cluster, serving(peer):
        cluster.put(ENDPOINT_SLICES, endpoint_slice("kubernetes-a", cluster.url))
        settings = KubernetesSettings(endpoint_slices="on", context="x")
        reached = backend("kubernetes", cluster.url)
        async with service(cluster=reached, kubernetes=settings) as client:
            await until_published(client, {A, OLD})
            assert (await backend_status(client, "kubernetes"))["servers"] is None
            cluster.put(ENDPOINT_SLICES, endpoint_slice("kubernetes-b", peer.url))
            paths = await until_published(client, {A, OLD, NEW})
            assert (await client.get(paths[A]))[2] == AFTER[A]
            assert await read_all(client, 20) == []
            cluster.delete(ENDPOINT_SLICES, "default/kubernetes-b")
            await until_published(client, {A, OLD})
            assert (await backend_status(client, "kubernetes"))["servers"] is None
            watched = (await client.status())["sources"]["kubernetes"]["watches"]["endpointslices"]
            assert watched["state"] == "synced"


async def test_endpoint_slices_that_may_not_be_read_cost_nothing() -> None:
    cluster = FakeCluster(dict(BEFORE))
    cluster.forbidden.add(ENDPOINT_SLICES)
    async with cluster:
        settings = KubernetesSettings(endpoint_slices="on", context="x")
        async with service(cluster=backend("kubernetes", cluster.url), kubernetes=settings) as client:
            await until_published(client, {A, OLD})
            assert await read_all(client, 5) == []


async def test_nopeer_answers_for_one_server() -> None:
    servers = server(BEFORE, "v1.36.2"), server(AFTER, "v1.37.0")
    async with serving(servers[0]), serving(servers[1]):
        urls = tuple(each.url for each in servers)
        async with service(backend("ha", urls[0], urls=urls)) as client:
            await until_published(client, {A, OLD, NEW})
            await until_listed(client, AGGREGATED, {A, OLD, NEW})
            assert await listed(client, f"{AGGREGATED};profile=nopeer") == {A, NEW}
            before = await client.get("/apis", Accept=AGGREGATED)
            alone = await client.get("/apis", Accept=f"{AGGREGATED};profile=nopeer")
            assert alone[1]["ETag"] != before[1]["ETag"]
            assert alone[1]["Content-Type"] == before[1]["Content-Type"] == AGGREGATED


async def test_one_server_is_asked_no_more_than_before() -> None:
    async with serving(server(BEFORE)) as origin, service(backend("one", origin.url)) as client:
        await until_published(client, {A, OLD})
        assert await read_all(client, 5) == []
        origin.documents = {**BEFORE, NEW: document(NEW)}  # it gains: no reason to look twice
        origin.log.clear()
        await until_published(client, {A, OLD, NEW})
        roots = origin.count("/openapi/v3?") + sum(line == "/openapi/v3" for line in origin.log)
        await asyncio.sleep(0.5)
        later = sum(line == "/openapi/v3" for line in origin.log)
        assert roots <= later  # nothing but the checks
        assert orjson.loads((await client.get("/status"))[2])["backends"]["one"]["servers"] is None
        origin.documents = {A: BEFORE[A]}  # it loses: it is looked at again, and there is one alone
        await until_published(client, {A})
        assert orjson.loads((await client.get("/status"))[2])["backends"]["one"]["servers"] is None


async def test_documents_that_flap_make_no_second_server() -> None:
    """``version`` of an aggregating apiserver is another server's at each request."""
    reference = "apis/apiregistration.k8s.io/v1"
    origin = server({**BEFORE, reference: document(reference), "version": document("version")}, "v1.37.2")
    origin.listed = dict(origin.documents or {})
    async with serving(origin), service(backend("one", origin.url)) as client:
        await until_published(client, {A, OLD, reference, "version"})
        for number in range(20):
            origin.listed["version"] = document("version", str(number % 2))
            await asyncio.sleep(0.11)
        assert (await backend_status(client, "one"))["servers"] is None


@pytest.mark.parametrize("form", ["connection", "request"])
async def test_listed_address_that_hides_two_servers_flaps_nowhere(
    form: str, caplog: pytest.LogCaptureFixture
) -> None:
    """One log line for each change of state, one root, one summary."""
    caplog.set_level("INFO")
    other = server(BEFORE, "v1.34.4")
    hiding = (
        balanced(server(BEFORE, "v1.34.4"), server(AFTER, "v1.34.4"))
        if form == "connection"
        else serving(AlternatingServer([BEFORE, AFTER]))
    )
    async with (
        serving(other),
        hiding as address,
        service(backend("ha", other.url, urls=(other.url, address.url))) as client,
    ):
        summary = ""
        while f"; {NEW} on one of them" not in summary:  # it has OLD, too
            if isinstance(address, Balancer):
                address.cut()
            await asyncio.sleep(0.1)
            summary = ((await backend_status(client, "ha"))["servers"] or {}).get("summary", "")
        await asyncio.sleep(0.5)
        caplog.clear()
        assert await read_all(client, 100) == []
        # A busy machine may let one time out, which is said, and taken back.
        told = [line for line in caplog.messages if "servers: " in line and "fail" not in line]
        assert {*told} <= {f"backend ha: {summary}"}
        assert not [line for line in caplog.messages if "changed" in line]


async def test_listed_server_whose_definition_comes_and_goes_is_one() -> None:
    servers = server(BEFORE, "v1.37.2"), server(BEFORE, "v1.37.2")
    async with serving(servers[0]), serving(servers[1]):
        urls = tuple(each.url for each in servers)
        async with service(backend("ha", urls[0], urls=urls)) as client:
            for documents in 2 * (BEFORE, {**BEFORE, NEW: document(NEW)}) + (BEFORE,):
                for each in servers:
                    each.documents = dict(documents)
                await until_published(client, set(documents))


async def test_replicas_of_an_extension_server_with_different_group_versions_are_one() -> None:
    """Behind one Service, each connection to the next; both APIServices are backends at its address."""
    one, two = "apis/plants.example.org/v1", "apis/plants.example.org/v2"
    replicas = server({one: document(one, "1")}), server({one: document(one, "2"), two: document(two)})
    async with FakeCluster(dict(BEFORE)) as cluster, balanced(*replicas) as balancer:
        port = int(balancer.url.rpartition(":")[2])
        for version in ("v1", "v2"):
            made = api_service("plants.example.org", version, service=("plants", "default"), port=port)
            cluster.put(API_SERVICES, made)
        grace = {"polling": replace(QUICK, removal_grace=15.0)}  # as by default
        async with serves(cluster, settings=grace) as client:
            await until_published(client, {A, OLD, one, two})
            told = {"v1": f"different documents: {one}", "v2": f"{two} on one of them"}
            for version, difference in told.items():
                summary, wanted = "", f"2 servers: 2 × version unknown; {difference}"
                while summary != wanted:
                    shown = await backend_status(client, f"{version}.plants.example.org")
                    summary = (shown["servers"] or {}).get("summary", "")
                assert shown["state"] == "up"
                assert len(shown["servers"]["servers"]) == 2
            assert await read_all(client, 100) == []
            body = (await client.get((await published(client))[one]))[2]
            assert body in {each.documents[one] for each in replicas if each.documents}
            printed = await asyncio.to_thread(CliRunner().invoke, main, ["status", client.base])
            assert f"v2.plants.example.org: 2 servers: 2 × version unknown; {told['v2']}" in printed.output
