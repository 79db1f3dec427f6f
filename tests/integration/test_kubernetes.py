"""A cluster as the source of backends: what appears, changes and goes in it, and what goes wrong with it."""

from __future__ import annotations

import asyncio
import base64
import logging
import re
import shutil
import ssl
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
import trustme
from click.testing import CliRunner

from data.crd_manifests import manifests
from deadline import DEADLINE
from fakes.apiserver import FakeAPIServer, document, hash_of, serving
from fakes.cluster import API_SERVICES, CRDS, FakeCluster, api_service
from running.cluster_service import (
    APPS,
    METRICS,
    WIDGETS,
    builtin,
    definition,
    extension,
    hash_now,
    owner,
    serves,
    until_ready,
)
from running.process import specmux
from running.service import backend, service
from shared_data import DATA, needs
from specmux_aggregator.cli import main
from specmux_aggregator.config.settings import KubernetesSettings
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_cache.access.server_access import Credentials
from specmux_converters.crd import build

NEWER = "apis/newer.k8s.io/v1"


def run(scenario: Callable[[FakeCluster], Any]) -> None:
    async def main() -> None:
        async with FakeCluster({APPS: document(APPS)}) as cluster:
            cluster.put(API_SERVICES, builtin("apps", "v1"))
            await scenario(cluster)

    asyncio.run(main())


def test_everything_a_cluster_has_is_published_by_its_owner() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        async with serving(FakeAPIServer({METRICS: document(METRICS)})) as metrics:
            cluster.put(API_SERVICES, extension(metrics))
            cluster.put(CRDS, definition("Widget"))
            async with serves(cluster) as client:
                assert {key: owner(client, key) for key in await client.paths()} == {
                    APPS: "kubernetes",
                    METRICS: "v1beta1.metrics.k8s.io",
                    WIDGETS: "kubernetes-crds",
                }
                for url in (await client.paths()).values():
                    assert (await client.get(url))[0] == 200
                report = await client.status()
                assert report["ready"]
                assert report["conflicts"] == []
                source = report["sources"]["kubernetes"]
                assert source["problems"] == source["unavailable"] == []
                assert {name: watch["state"] for name, watch in source["watches"].items()} == {
                    "apiservices": "synced",
                    "customresourcedefinitions": "synced",
                    "endpointslices": "synced",
                }
                assert not any(seen.headers.get("Authorization") for seen in cluster.requests)

    run(scenario)


def test_api_service_that_appears_changes_or_goes_is_published() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        async with (
            serving(FakeAPIServer({METRICS: document(METRICS)})) as one,
            serving(FakeAPIServer({METRICS: document(METRICS, "2")})) as two,
            serves(cluster) as client,
        ):
            assert owner(client, METRICS) is None
            cluster.put(API_SERVICES, extension(one))
            await client.until(lambda: owner(client, METRICS) == "v1beta1.metrics.k8s.io", "appears")
            before = hash_now(client, METRICS)
            cluster.put(API_SERVICES, extension(two))
            await client.until(lambda: hash_now(client, METRICS) not in (None, before), "changes")
            cluster.delete(API_SERVICES, "v1beta1.metrics.k8s.io")
            await client.until(lambda: owner(client, METRICS) is None, "goes")
            assert "v1beta1.metrics.k8s.io" not in (await client.status())["backends"]

    run(scenario)


def test_definition_that_appears_changes_stops_being_served_or_goes_is_published() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.put(CRDS, definition("Gadget"))  # the worker process is up when the clock starts
        async with serves(cluster) as client:
            gadgets = hash_now(client, WIDGETS)
            cluster.put(CRDS, definition("Widget", "v1", "v2"))
            await client.until(lambda: hash_now(client, WIDGETS) not in (None, gadgets), "appears")
            assert owner(client, "apis/example.com/v2") == "kubernetes-crds"
            second = hash_now(client, WIDGETS)
            cluster.put(CRDS, definition("Widget", "v1", "v2", description="changed"))
            await client.until(lambda: hash_now(client, WIDGETS) not in (second, gadgets), "changes")
            cluster.put(CRDS, definition("Widget", "v1", description="changed"))
            await client.until(lambda: owner(client, "apis/example.com/v2") is None, "stops")
            cluster.delete(CRDS, "widgets.example.com")
            await client.until(lambda: hash_now(client, WIDGETS) == gadgets, "goes")
            cluster.delete(CRDS, "gadgets.example.com")
            await client.until(lambda: owner(client, WIDGETS) is None, "all gone")

    run(scenario)


def test_definition_that_conflicts_or_is_not_established_is_told_and_costs_no_other() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.put(CRDS, definition("Widget"))
        thief = definition("Widget")
        thief["metadata"] = {"name": "athieves.example.com", "creationTimestamp": "2026-02-01T00:00:00Z"}
        thief["spec"]["names"]["plural"] = "athieves"
        cluster.put(CRDS, thief)
        young = definition("Young", group="young.example.com")
        young["status"] = {}
        cluster.put(CRDS, young)
        unstructural = definition("Loose", group="loose.example.com")
        unstructural["spec"]["versions"][0]["schema"] = {"openAPIV3Schema": {"properties": {"a": {}}}}
        cluster.put(CRDS, unstructural)
        cluster.put(CRDS, definition("Deployment", group="apps"))
        async with serves(cluster) as client:
            report = await client.status()
            assert sorted(report["groupVersions"]) == [APPS, WIDGETS, "apis/loose.example.com/v1"]
            assert owner(client, APPS) == "kubernetes"
            notes = report["backends"]["kubernetes-crds"]["notes"]
            assert any(note.startswith("athieves.example.com") for note in notes)
            assert any(note.startswith("looses.loose.example.com") for note in notes)
            problems = report["sources"]["kubernetes"]["problems"]
            assert problems == [
                f"CustomResourceDefinition deployments.apps: {APPS} is served from elsewhere",
                "CustomResourceDefinition youngs.young.example.com: not Established",
            ]
            cluster.put(CRDS, definition("Young", group="young.example.com"))
            await client.until(lambda: owner(client, "apis/young.example.com/v1") is not None, "established")

    run(scenario)


def test_forbidden_resources_are_done_without_and_told_once(caplog: pytest.LogCaptureFixture) -> None:
    crd_document = document(WIDGETS)

    async def scenario(cluster: FakeCluster) -> None:
        assert cluster.documents is not None
        cluster.documents[WIDGETS] = crd_document
        cluster.put(CRDS, definition("Widget"))
        cluster.forbidden |= {CRDS, API_SERVICES}
        async with serving(FakeAPIServer({METRICS: document(METRICS)})) as metrics, serves(cluster) as client:
            cluster.put(API_SERVICES, extension(metrics))
            assert owner(client, WIDGETS) == "kubernetes"
            await asyncio.sleep(1.0)  # asked again several times
            watches = (await client.status())["sources"]["kubernetes"]["watches"]
            assert watches["customresourcedefinitions"]["state"] == "forbidden"
            assert watches["apiservices"]["error"]["cause"] == "credentials"
            exposed = (await client.get("/metrics"))[2].decode()
            assert 'specmux_source_up{resource="apiservices"} 0.0' in exposed
            told = [record.message for record in caplog.records if CRDS in record.message]
            assert len(told) == 1, told
            cluster.forbidden.clear()
            await client.until(lambda: owner(client, WIDGETS) == "kubernetes-crds", "granted")
            await client.until(lambda: owner(client, METRICS) is not None, "granted")
            cluster.forbidden |= {CRDS, API_SERVICES}
            cluster.compact()
            cluster.put(API_SERVICES, builtin("batch", "v1"))
            cluster.put(CRDS, definition("Gadget"))
            await client.until(lambda: owner(client, WIDGETS) == "kubernetes", "taken away")
            await client.until(lambda: owner(client, METRICS) is None, "taken away")
            body = orjson.loads((await client.get((await client.paths())[WIDGETS]))[2])
            assert body == orjson.loads(crd_document)

    with caplog.at_level(logging.INFO):
        run(scenario)


def test_dead_service_costs_nobody_else_and_the_apiserver_stands_in() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        assert cluster.documents is not None
        aggregated = cluster.documents[METRICS] = document(METRICS)
        metrics = FakeAPIServer({METRICS: aggregated})
        await metrics.start()
        dead = extension(metrics)
        dead["status"]["conditions"][0] |= {"status": "False", "reason": "FailedDiscoveryCheck"}
        await metrics.stop()
        cluster.put(API_SERVICES, dead)
        async with serves(cluster) as client:
            assert owner(client, METRICS) == "kubernetes"
            assert owner(client, APPS) == "kubernetes"
            report = await client.status()
            assert report["backends"]["v1beta1.metrics.k8s.io"]["error"]["cause"] == "refused"
            assert report["conflicts"] == []
            (unavailable,) = report["sources"]["kubernetes"]["unavailable"]
            assert unavailable == {
                "name": "v1beta1.metrics.k8s.io",
                "reason": "FailedDiscoveryCheck",
                "message": "",
            }
            gauge = 'aggregator_unavailable_apiservice{name="v1beta1.metrics.k8s.io"}'
            assert f"{gauge} 1.0" in (await client.get("/metrics"))[2].decode()
            await metrics.start()
            try:
                await client.until(lambda: owner(client, METRICS) == "v1beta1.metrics.k8s.io", "is back")
                assert hash_now(client, METRICS) == hash_of(aggregated)
                # What its cluster says counts here, not what we see.
                assert f"{gauge} 1.0" in (await client.get("/metrics"))[2].decode()
                cluster.put(API_SERVICES, extension(metrics))
                async with asyncio.timeout(DEADLINE):
                    while f"{gauge} 0.0" not in (await client.get("/metrics"))[2].decode():
                        await asyncio.sleep(0.01)
            finally:
                await metrics.stop()

    run(scenario)


def test_extension_apiserver_is_verified_by_its_bundle_and_is_shown_nothing_of_ours(tmp_path: Path) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("extension.default.svc").configure_cert(context)
    bundle = base64.b64encode(authority.cert_pem.bytes()).decode()
    token = tmp_path / "token"
    token.write_text("for-extensions")

    async def scenario(cluster: FakeCluster) -> None:
        cluster.tokens = {"ours"}
        server = Backend(
            name=BackendName("kubernetes"), url=cluster.url, credentials=Credentials(token="ours")
        )
        options = {"in_cluster": True, "service_url": "https://127.0.0.1:{port}"}
        async with FakeCluster({METRICS: document(METRICS)}, tls=context) as metrics:
            item = extension(metrics)
            item["spec"]["caBundle"] = base64.b64encode(trustme.CA().cert_pem.bytes()).decode()
            cluster.put(API_SERVICES, item)
            async with service(cluster=server, kubernetes=KubernetesSettings(**options)) as client:
                await until_ready(client)
                failed = (await client.status())["backends"]["v1beta1.metrics.k8s.io"]
                assert failed["error"]["cause"] == "bad_tls"
                assert metrics.requests == []
                item["spec"]["caBundle"] = bundle
                cluster.put(API_SERVICES, item)
                await client.until(lambda: owner(client, METRICS) == "v1beta1.metrics.k8s.io", "verified")
                assert not any("Authorization" in seen.headers for seen in metrics.requests)
            options["service_token_file"] = token
            async with service(cluster=server, kubernetes=KubernetesSettings(**options)) as client:
                await until_ready(client)
                shown = metrics.requests[-1].headers["Authorization"]
                assert shown == "Bearer for-extensions"
        assert {seen.headers["Authorization"] for seen in cluster.requests} == {"Bearer ours"}

    run(scenario)


def test_malformed_api_service_is_named_and_the_rest_stands() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        async with serving(FakeAPIServer({METRICS: document(METRICS)})) as metrics:
            cluster.put(API_SERVICES, extension(metrics))
            cluster.put(API_SERVICES, api_service("bad.io", "v1", service=("..", "x")))
            async with serves(cluster) as client:
                assert owner(client, METRICS) == "v1beta1.metrics.k8s.io"
                assert (await client.status())["sources"]["kubernetes"]["problems"] == [
                    "APIService v1.bad.io: spec.service.name is no DNS label"
                ]

    run(scenario)


def test_configuration_wins_by_name_and_by_group_version_and_keeps_what_was_found() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        async with (
            serving(FakeAPIServer({METRICS: document(METRICS)})) as metrics,
            serving(FakeAPIServer({WIDGETS: document(WIDGETS), APPS: document(APPS, "mine")})) as mine,
        ):
            cluster.put(API_SERVICES, extension(metrics))
            cluster.put(CRDS, definition("Widget"))
            configured = backend("mine", mine.url, priority=-5)
            async with serves(cluster, configured) as client:
                assert (owner(client, WIDGETS), owner(client, APPS)) == ("mine", "mine")
                conflicts = (await client.status())["conflicts"]
                assert [item["losers"] for item in conflicts] == [["kubernetes-crds"]]
                same_name = backend("v1beta1.metrics.k8s.io", mine.url)
                await client.app.reconfigure(replace(client.app.settings, backends=(same_name,)))
                renamed = "v1beta1.metrics.k8s.io"
                await client.until(
                    lambda: owner(client, WIDGETS) == renamed, "the name is the configuration's"
                )
                assert owner(client, METRICS) is None
                report = await client.status()
                assert report["sources"]["leftOut"] == [
                    "v1beta1.metrics.k8s.io: the configuration has a backend of this name"
                ]
                await client.app.reconfigure(client.app.settings)
                await client.until(lambda: owner(client, METRICS) == "v1beta1.metrics.k8s.io", "found again")
                assert (await client.status())["sources"]["leftOut"] == []

    run(scenario)


def test_history_that_is_gone_and_watches_that_end_lose_nothing() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.watch_life = 0.2
        cluster.put(CRDS, definition("Widget"))
        async with serves(cluster) as client:
            for number in range(4):
                cluster.put(CRDS, definition("Gadget", description=str(number)))
                before = hash_now(client, WIDGETS)
                if number % 2:
                    cluster.compact()
                await client.until(lambda before=before: hash_now(client, WIDGETS) != before, "change")
            cluster.delete(CRDS, "gadgets.example.com")
            cluster.compact()
            cluster.cut_watches()
            before = hash_now(client, WIDGETS)
            await client.until(lambda: hash_now(client, WIDGETS) != before, "gone during a gap")

    run(scenario)


def test_burst_of_events_costs_few_builds() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.put(CRDS, definition("Widget"))
        async with serves(cluster) as client:
            generation = client.app.publisher.current.generation
            for number in range(100):
                cluster.put(CRDS, definition(f"Kind{number}", group=f"g{number}.example.com"))
                cluster.put(API_SERVICES, api_service(f"g{number}.example.com", "v1"))
            last = "apis/g99.example.com/v1"
            await client.until(lambda: owner(client, last) is not None, "burst")
            assert len(await client.paths()) == 102
            # Of 200 events; a machine that is busy hands them over in more portions than one.
            assert client.app.publisher.current.generation - generation < 50

    run(scenario)


def test_heartbeats_of_status_publish_nothing() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.put(CRDS, definition("Widget"))
        async with serves(cluster) as client:
            generation = client.app.publisher.current.generation
            for number in range(20):
                beaten = definition("Widget")
                beaten["metadata"]["managedFields"] = [{"time": number}]
                beaten["status"]["conditions"].append({"type": "Beat", "message": str(number)})
                cluster.put(CRDS, beaten)
                cluster.put(API_SERVICES, builtin("apps", "v1"))
                await asyncio.sleep(0.02)
            await asyncio.sleep(0.3)
            assert client.app.publisher.current.generation == generation

    run(scenario)


def test_restart_with_the_apiserver_dead_serves_what_was_known(tmp_path: Path) -> None:
    async def scenario(cluster: FakeCluster) -> None:
        async with serving(FakeAPIServer({METRICS: document(METRICS)})) as metrics:
            cluster.put(API_SERVICES, extension(metrics))
            cluster.put(CRDS, definition("Widget"))
            async with serves(cluster, state=tmp_path) as client:
                before = await client.paths()
                for url in before.values():
                    assert (await client.get(url))[0] == 200
            await cluster.stop()
            async with serves(cluster, state=tmp_path) as client:
                assert await client.paths() == before
                await client.ready()
                assert (await client.get("/version"))[0] == 503
                await asyncio.sleep(0.1)
                text = (await client.get("/metrics"))[2].decode()
                ages = re.findall(r'specmux_backend_age_seconds\{backend="kubernetes"\} (\S+)', text)
                assert [float(age) > 0.1 for age in ages] == [True]  # of what the state has
                assert owner(client, METRICS) == "v1beta1.metrics.k8s.io"
                for url in before.values():
                    assert (await client.get(url))[0] == 200
                await cluster.start()
                cluster.put(CRDS, definition("Widget", "v1", "v2"))
                await client.until(lambda: owner(client, "apis/example.com/v2") is not None, "is back")

    run(scenario)


def test_group_version_stays_until_the_last_server_lost_it() -> None:
    """An apiserver of another release deletes the APIServices of what it does not serve itself."""

    async def scenario(cluster: FakeCluster) -> None:
        assert cluster.documents is not None
        cluster.documents[NEWER] = document(NEWER)
        cluster.put(API_SERVICES, builtin("newer.k8s.io", "v1"))
        async with serves(cluster) as client:
            await client.until(lambda: owner(client, NEWER) == "kubernetes", "published")
            cluster.delete(API_SERVICES, "v1.newer.k8s.io")
            cluster.put(CRDS, definition("Widget"))
            await client.until(lambda: owner(client, WIDGETS) == "kubernetes-crds", "evaluated")
            evaluated = time.monotonic()

            def is_asked_again() -> bool:
                checks = client.app.backends.checks()
                return any(
                    each.backend.name == "kubernetes" and check.started > evaluated + 0.5
                    for each, check in checks
                )

            await client.until(is_asked_again, "asked again, longer than a missing one is kept")
            assert owner(client, NEWER) == "kubernetes"
            assert (await client.get((await client.paths())[NEWER]))[0] == 200
            del cluster.documents[NEWER]
            await client.until(lambda: owner(client, NEWER) is None, "lost")

    run(scenario)


def test_refused_token_ends_what_an_open_watch_promises() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        async with serves(cluster) as client:

            def states() -> set[str]:
                source = client.app.cluster
                assert source is not None
                return {state.phase.value for state in source.watches.values()}

            await client.until(lambda: states() == {"synced"}, "synced")
            cluster.tokens = {"another"}
            await client.until(lambda: states() == {"failing"}, "said")
            text = (await client.get("/metrics"))[2].decode()
            assert set(re.findall(r"specmux_source_up\{.*\} (\S+)", text)) == {"0.0"}
            cluster.tokens = None
            await client.until(lambda: states() == {"synced"}, "back")

    run(scenario)


def test_readiness_waits_for_the_first_lists() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        gate = asyncio.Event()

        async def held(_: Any) -> None:
            await gate.wait()

        cluster.answers[CRDS] = held
        cluster.put(CRDS, definition("Widget"))
        server = Backend(name=BackendName("kubernetes"), url=cluster.url)
        async with service(cluster=server, kubernetes=KubernetesSettings(in_cluster=True)) as client:
            source = client.app.cluster
            assert source is not None
            await client.until(lambda: source.pending == ("customresourcedefinitions",), "APIServices")
            await client.until(lambda: owner(client, APPS) is not None, "the apiserver")
            status, _, body = await client.get("/readyz")
            assert status == 503
            assert body == b"waiting for the first answer of: the watch of customresourcedefinitions\n"
            assert not (await client.status())["ready"]
            gate.set()
            await until_ready(client)
            assert owner(client, WIDGETS) == "kubernetes-crds"

    run(scenario)


def test_what_is_switched_off_is_not_watched() -> None:
    async def scenario(cluster: FakeCluster) -> None:
        cluster.put(CRDS, definition("Widget"))
        async with serves(cluster, api_services=False, apiserver=False) as client:
            assert list(await client.paths()) == [WIDGETS]
        assert cluster.seen(API_SERVICES) == []
        async with serves(cluster, crds=False) as client:
            assert list(await client.paths()) == [APPS]

    run(scenario)


@needs("data/crds")
def test_real_definitions_are_served_as_upstream_builds_them() -> None:
    """As ``build`` builds them, which golden documents prove for each release."""
    folders = [DATA / "crds" / operator for operator in ("cert-manager", "prometheus-operator")]
    found = [manifest for folder in folders for manifest in manifests(folder)]

    async def scenario(cluster: FakeCluster) -> None:
        for manifest in found:
            established = {"conditions": [{"type": "Established", "status": "True"}]}
            cluster.put(CRDS, {**manifest, "status": established})
        async with serves(cluster) as client:
            paths = await client.paths()
            documents = build(found).documents
            for key in documents:
                assert orjson.loads((await client.get(paths[key]))[2]) == documents[key], key
            assert len(documents) == len(paths) - 1 > 0

    run(scenario)


def test_process_serves_a_cluster_of_a_kubeconfig_to_kubectl(tmp_path: Path) -> None:
    kubectl = shutil.which("kubectl")

    async def scenario(cluster: FakeCluster) -> None:
        cluster.tokens = {"t1"}
        cluster.put(CRDS, definition("Widget", description="What widgets are."))
        config = cluster.kubeconfig(tmp_path, token="t1")
        await asyncio.to_thread(explain, config)

    def explain(config: Path) -> None:
        with specmux("serve", "--kubeconfig", str(config), "--listen-port", "0") as process:
            process.until_ready()
            assert WIDGETS in process.paths()
            assert "t1" not in process.output + process.get("/status")[2].decode()
            if kubectl is None:
                pytest.skip("kubectl is not here")
            found = subprocess.run(
                [
                    kubectl,
                    f"--server=http://127.0.0.1:{process.port}",
                    f"--cache-dir={tmp_path / 'cache'}",
                    "explain",
                    "widgets.example.com",
                ],
                env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
                capture_output=True,
                text=True,
                timeout=30,
                check=False,
            )
            assert "What widgets are." in found.stdout, found.stdout + found.stderr
            assert process.stop() == 0

    run(scenario)


def test_service_refuses_a_cluster_that_cannot_be_understood(tmp_path: Path) -> None:
    run = CliRunner(env={"KUBERNETES_SERVICE_HOST": ""}).invoke
    assert run(main, ["serve", "--kubeconfig", str(tmp_path / "nowhere")]).exit_code == 3
    outside = run(main, ["serve", "--in-cluster"])
    assert (outside.exit_code, "not inside a cluster" in outside.output) == (3, True)
