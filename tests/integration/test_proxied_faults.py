"""What is not passed on, backends that fail, and real clients."""

from __future__ import annotations

import asyncio
import logging
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest

from deadline import DEADLINE
from fakes.apiserver import FakeAPIServer, document, serving
from fakes.cluster import API_SERVICES, CRDS, FakeCluster
from fakes.streaming_backend import Seen, StreamingBackend, answer_ok, saying, streaming
from integration.proxied import gauge, watch
from running.cluster_service import METRICS, WIDGETS, builtin, definition, extension, until_ready
from running.cluster_service import owner as owner_in
from running.proxying_service import APPS, ON, THINGS, exchange, proxying, reason_of
from running.service import QUICK, Client, backend, directory, service
from running.wire_client import connected
from specmux_aggregator.aggregation.publisher import Publisher
from specmux_aggregator.config.settings import KubernetesSettings
from specmux_cache.access.server_access import Credentials
from specmux_converters.group_versions import GroupVersion


@pytest.mark.parametrize(
    ("protocol", "method"), [("websocket", "GET"), ("SPDY/3.1", "POST"), ("SPDY/3.1", "GET"), ("h2c", "GET")]
)
async def test_upgrade_is_refused_with_advice(protocol: str, method: str) -> None:
    async with proxying() as (origin, client):
        sent = (
            f"{method} {THINGS}/x/exec?command=sh HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n"
            f"Upgrade: {protocol}\r\n\r\n"
        )
        ((answer, body),) = await exchange(client, sent.encode(), b"\x80\x03\x00\x01")
        assert (answer.status, reason_of(body)) == (501, "NotImplemented")
        assert "apiserver" in orjson.loads(body)["message"]
        assert origin.requests == []


async def test_trace_is_refused() -> None:
    async with proxying() as (origin, client):
        status, _, _ = await client.get(THINGS, method="TRACE")
        assert status == 405
        assert origin.requests == []


async def test_clients_known_by_certificate_are_told_why_not(monkeypatch: pytest.MonkeyPatch) -> None:
    async with proxying() as (origin, client):
        monkeypatch.setattr(client.app._proxy_handler, "_clients_have_certificates", True)
        status, _, body = await client.get(THINGS)
        assert (status, reason_of(body)) == (501, "NotImplemented")
        assert origin.requests == []
        assert (await client.get("/openapi/v2"))[0] == 200


def owner(publisher: Publisher) -> str:
    return publisher.current.entries[GroupVersion(APPS)].owner


async def test_circle_is_broken() -> None:
    async with proxying() as (origin, client), proxying() as (_, other):
        for one, two in ((client, other), (other, client)):
            moved = (backend("b", two.base, priority=1),)
            await one.app.reconfigure(
                replace(one.app.settings, backends=(*one.app.settings.backends, *moved))
            )
        entries = [one.app.publisher for one in (client, other)]
        await client.until(lambda: all(item.current.entries[APPS].owner == "b" for item in entries))  # type: ignore[index]
        status, _, body = await client.get(THINGS)
        assert (status, reason_of(body)) == (508, "LoopDetected")
        await client.until(
            lambda: all(item.current.observations["b"].failure is None for item in entries)  # type: ignore[index]
        )
        status, _, body = await client.get("/openapi/v2")
        assert (status, reason_of(body)) == (508, "LoopDetected")
        assert origin.requests == []


async def test_resources_of_nobody_and_of_a_directory_are_404(tmp_path: Path) -> None:
    (tmp_path / "apis/files.io").mkdir(parents=True)
    (tmp_path / "apis/files.io/v1.json").write_bytes(document("apis/files.io/v1"))
    async with service(directory("d", tmp_path), proxy=ON) as client:
        await client.ready()
        for group_version in ("apis/files.io/v1", "apis/none/v1"):
            status, _, body = await client.get(f"/{group_version}/things", method="POST")
            assert (status, reason_of(body)) == (404, "NotFound")


@pytest.mark.parametrize(
    ("said", "status", "cause"),
    [
        (b"HTTP/1.1 307 Go\r\nLocation: http://evil/\r\nContent-Length: 0\r\n\r\n", 502, "redirected"),
        (b"nonsense\r\n\r\n", 502, "bad_body"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 502, "bad_body"),
        (b"HTTP/1.1 101 Yes\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n", 502, "unexpected_status"),
        (b"HTTP/1.1 200 OK\r\nX: a\x01\r\nContent-Length: 0\r\n\r\n", 502, "bad_body"),
    ],
)
async def test_answer_that_must_not_be_passed_on_is_502(said: bytes, status: int, cause: str) -> None:
    async with proxying(saying(said)) as (origin, client):
        answer = await client.get(THINGS)
        assert (answer[0], reason_of(answer[2])) == (status, "BadGateway")
        assert cause in orjson.loads(answer[2])["message"]
        assert "Location" not in answer[1]
        origin.script = answer_ok
        assert (await client.get(THINGS))[0] == 200


async def test_silent_backend_is_504_and_one_that_hangs_up_is_502() -> None:
    async def silent(seen: Seen) -> None:
        await seen.wait_until_left()

    async def hangs_up(seen: Seen) -> None:
        seen.writer.close()

    async with proxying(silent, proxy=replace(ON, answer_timeout=3.0)) as (origin, client):
        status, headers, body = await client.get(THINGS)
        assert (status, reason_of(body)) == (504, "Timeout")
        await asyncio.wait_for(origin.requests[0].left.wait(), DEADLINE)
        origin.script = hangs_up
        status, headers, body = await client.get(THINGS, method="POST")
        assert (status, reason_of(body)) == (502, "BadGateway")
        assert "Retry-After" not in headers  # it may have been done


def test_lost_backend_is_503_logged_once_and_once_when_it_is_back(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario() -> None:
        origin = FakeAPIServer({APPS: document(APPS)})
        slow = replace(QUICK, interval=60)
        async with serving(origin), service(backend("a", origin.url), proxy=ON, polling=slow) as client:
            await client.ready()
            await origin.stop()
            for _ in range(3):
                status, headers, body = await client.get(THINGS)
                assert (status, headers["Retry-After"]) == (503, "1")
                assert reason_of(body) == "ServiceUnavailable"
            await origin.start()
            assert (await client.get(THINGS))[0] == 404  # the backend's own
            assert (await client.get(THINGS))[0] == 404
            lines = [record.getMessage() for record in caplog.records if "passed on" in record.getMessage()]
            assert len([line for line in lines if "refused" in line]) == 1
            assert len([line for line in lines if "again" in line]) == 1

    with caplog.at_level(logging.INFO):
        asyncio.run(scenario())


async def test_body_is_not_sent_twice_over_a_connection_that_had_ended() -> None:
    async with proxying() as (origin, client), connected(client.base) as wire:
        await wire.ask(THINGS)
        assert (await wire.answer())[0].status == 200

        async def takes_and_dies(seen: Seen) -> None:
            await seen.read_body()
            seen.writer.transport.abort()  # type: ignore[attr-defined]

        origin.script = takes_and_dies
        await wire.ask(THINGS, method="PUT", body=b"abc")
        answer, body = await wire.answer()
        assert (answer.status, reason_of(body)) == (502, "BadGateway")
        assert [seen.body for seen in origin.requests if seen.method == "PUT"] == [b"abc"]


async def test_answer_before_the_end_of_a_body_ends_the_connection() -> None:
    async def refuses(seen: Seen) -> None:
        await seen.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\n{}")

    async with proxying(refuses) as (_, client), connected(client.base) as wire:
        await wire.ask(THINGS, "Content-Length: 1000000", method="POST")
        await wire.send(b"x" * 1000)
        answer, body = await wire.answer()
        assert (answer.status, answer.value("Connection"), body) == (413, "close", b"{}")
        assert await wire.at_end()


async def test_stopping_the_service_ends_watches_within_its_time() -> None:
    async with proxying(watch) as (origin, client), connected(client.base) as wire:
        await wire.ask(f"{THINGS}?watch=true")
        await wire.head()
        async with asyncio.timeout(DEADLINE):
            await client.app.server.stop()
        await asyncio.wait_for(origin.requests[0].left.wait(), DEADLINE)


async def test_resources_of_a_cluster_go_to_their_extension_or_to_the_apiserver_as_the_client() -> None:
    async with (
        serving(FakeAPIServer({METRICS: document(METRICS)})) as metrics,
        FakeCluster({APPS: document(APPS)}) as cluster,
    ):
        cluster.tokens = {"ours", "theirs"}
        cluster.put(API_SERVICES, builtin("apps", "v1"))
        cluster.put(API_SERVICES, extension(metrics))
        cluster.put(CRDS, definition("Widget"))
        made = {f"/{key}/things": b'{"from": "the apiserver"}' for key in (WIDGETS, APPS)}
        cluster.pages.update(made)
        ours = Credentials(token="ours", impersonation=(("Impersonate-User", "specmux"),))
        server = backend("kubernetes", cluster.url, credentials=ours)
        watched = KubernetesSettings(in_cluster=True, service_url="http://127.0.0.1:{port}")
        async with service(cluster=server, kubernetes=watched, proxy=ON) as client:
            await until_ready(client)
            await client.until(lambda: METRICS in client.app.publisher.current.entries)
            assert owner_in(client, WIDGETS) == "kubernetes-crds"
            for target, body in made.items():
                answer = await client.get(target, Authorization="Bearer theirs")
                assert (answer[0], answer[2]) == (200, body)
                sent = cluster.seen(target)[-1].headers
                assert sent["Authorization"] == "Bearer theirs"
                assert "Impersonate-User" not in sent
            assert (await client.get(f"/{WIDGETS}/things"))[0] == 401  # nobody lends a name
            before = len(cluster.requests)
            assert (await client.get(f"/{METRICS}/nodes"))[0] == 404  # the extension's own answer
            assert not any("/nodes" in seen.target for seen in cluster.requests[before:])


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
async def test_kubectl_reads_and_writes_through_us(tmp_path: Path) -> None:
    thing = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x"}}
    path = "/api/v1/namespaces/a/configmaps"

    async def script(seen: Seen) -> None:
        await seen.read_body()
        body = seen.body or orjson.dumps(thing)
        await seen.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        )
        await seen.write(body)

    origin = StreamingBackend(group_versions=("api/v1",), script=script)
    async with streaming(origin), service(backend("a", origin.url), proxy=ON) as client:
        await client.ready()
        config = tmp_path / "config"
        config.write_text("{}")
        manifest = tmp_path / "x.json"
        manifest.write_bytes(orjson.dumps(thing))

        async def kubectl(*arguments: str) -> Any:
            command = ["kubectl", f"--kubeconfig={config}", f"--server={client.base}", *arguments]
            done = await asyncio.to_thread(
                subprocess.run, command, capture_output=True, timeout=DEADLINE, check=False
            )
            assert done.returncode == 0, done.stderr
            return orjson.loads(done.stdout)

        assert await kubectl("get", "--raw", f"{path}/x") == thing
        assert await kubectl("create", "--raw", path, "-f", str(manifest)) == thing
        assert await kubectl("replace", "--raw", f"{path}/x", "-f", str(manifest)) == thing
        await kubectl("delete", "--raw", f"{path}/x")
        assert [seen.method for seen in origin.requests] == ["GET", "POST", "PUT", "DELETE"]


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
async def test_kubectl_watches_through_us_and_leaves_nothing_behind(tmp_path: Path) -> None:
    group, key = "apiextensions.k8s.io", "apis/apiextensions.k8s.io/v1"
    version = {"groupVersion": f"{group}/v1", "version": "v1"}
    resource = {
        "name": "customresourcedefinitions",
        "singularName": "customresourcedefinition",
        "namespaced": False,
        "kind": "CustomResourceDefinition",
        "verbs": ["get", "list", "watch"],
    }
    pages = {
        "/api": {"kind": "APIVersions", "versions": []},
        "/apis": {"kind": "APIGroupList", "groups": [{"name": group, "versions": [version]}]},
        f"/{key}": {"kind": "APIResourceList", "groupVersion": f"{group}/v1", "resources": [resource]},
    }

    cluster = FakeCluster({key: document(key)})
    cluster.pages = {path: orjson.dumps(page) for path, page in pages.items()}
    async with cluster, service(backend("a", cluster.url), proxy=ON) as client:
        cluster.put(CRDS, {"metadata": {"name": "one.example.com"}})
        await client.ready()
        await until_listed(client, f"/{key}")
        (tmp_path / "config").write_text("{}")
        kubectl = await asyncio.create_subprocess_exec(
            "kubectl",
            f"--kubeconfig={tmp_path / 'config'}",
            f"--cache-dir={tmp_path / 'cache'}",
            f"--server={client.base}",
            *("get", "customresourcedefinitions", "--watch", "-o", "name"),
            stdout=subprocess.PIPE,
        )
        assert kubectl.stdout is not None
        try:
            async with asyncio.timeout(DEADLINE):
                assert b"one.example.com" in await kubectl.stdout.readline()
                cluster.put(CRDS, {"metadata": {"name": "two.example.com"}})
                assert b"two.example.com" in await kubectl.stdout.readline()
            assert gauge(client, "specmux_proxied_requests_in_flight") == 1
        finally:
            kubectl.kill()
            await kubectl.wait()
        await client.until(lambda: gauge(client, "specmux_proxied_requests_in_flight") == 0)
        cluster.cut_watches()  # it would not notice by itself before it writes


async def until_listed(client: Client, path: str) -> None:
    async with asyncio.timeout(DEADLINE):
        while (await client.get(path))[0] != 200:
            await asyncio.sleep(0.02)
