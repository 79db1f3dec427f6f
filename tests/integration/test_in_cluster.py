"""The service as the chart runs it in a cluster.

The cluster enforces RBAC, so a rule that is missing is a refusal, and one that nothing used is seen as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import yaml

from fakes.cluster import ACCESS_REVIEWS, API_SERVICES, CRDS, TOKEN_REVIEWS, FakeCluster
from fakes.role_based_access import Access, Right, asked_right
from running.chart_pod import RunningPod
from running.chart_world import (
    OURS,
    PER_GROUP,
    PROMETHEUS,
    Chart,
    World,
    by_hand,
    default_chart,
    rendered,
    world,
)
from running.cluster_service import APPS, METRICS, WIDGETS, accept_definition, definition
from running.helm_chart import needs_helm
from running.image import ImageRoot, gathered


@needs_helm
def test_configuration_for_machines_without_helm_is_the_charts() -> None:
    chart, held = rendered(), by_hand()
    assert yaml.safe_load(held.config) == yaml.safe_load(chart.config)
    assert (held.arguments, held.places) == (chart.arguments, chart.places)

    for account in (OURS, PROMETHEUS):
        mine, theirs = Access(), Access()
        mine.bind(held.access)
        theirs.bind(chart.access)
        assert mine.granted(account) == theirs.granted(account) != set()


def run(
    folder: Path,
    chart: Chart,
    scenario: Callable[[World], Awaitable[None]],
    *,
    image: ImageRoot | None = None,
) -> None:
    async def main() -> None:
        async with world(folder / "pod", chart, image=image) as made_world:
            await scenario(made_world)

    asyncio.run(main())


def expect_quick_end(pod: RunningPod) -> None:
    """Long before its ``shutdown_timeout``."""
    assert pod.process.stop() == 0, pod.process.output
    assert "Traceback" not in pod.process.output


def asked_of(server: FakeCluster) -> set[Right]:
    return {asked_right(seen.method, seen.target) for seen in server.requests}


@pytest.mark.parametrize(("form", "idle"), [("aggregated", PER_GROUP), ("legacy", set())])
def test_default_values_serve_everything_with_exactly_the_rights_of_the_chart(
    tmp_path: Path, form: str, idle: set[str]
) -> None:
    async def scenario(world: World) -> None:
        world.cluster.discovery.form = form
        await asyncio.to_thread(use, world)
        assert world.cluster.access.refused == []
        assert world.cluster.strangers == []
        assert world.unused() == idle
        # Extension apiservers get nothing of ours to see.
        assert world.extension.requests
        assert not any("Authorization" in seen.headers for seen in world.extension.requests)

    def use(world: World) -> None:
        with world.pod.started() as pod:
            pod.until_ready()
            paths = pod.json("/openapi/v3", "alice")["paths"]
            assert set(paths) == {APPS, METRICS, WIDGETS}
            for item in paths.values():
                assert pod.get(item["serverRelativeURL"], "alice")[0] == 200
            groups = {item["name"] for item in pod.json("/apis", "alice")["groups"]}
            assert groups == {"apps", "example.com", "metrics.k8s.io"}
            (listed,) = pod.json(f"/{WIDGETS}", "alice")["resources"]
            assert listed["kind"] == "Widget"
            assert pod.json("/api", "alice")["versions"] == ["v1"]
            assert pod.json("/version", "alice")["gitVersion"] == "v1.33.0"
            assert pod.json("/openapi/v2", "alice")["swagger"] == "2.0"
            expect_quick_end(pod)

    run(tmp_path, default_chart(), scenario)


def test_default_values_let_in_whom_the_cluster_lets_in(tmp_path: Path) -> None:
    everything = ("/openapi/v3", "/openapi/v2", "/apis", "/api", "/version", "/metrics", "/status")
    allowed = {
        "alice": {"/openapi/v3", "/openapi/v2", "/apis", "/api", "/version"},
        "bob": set(),
        "prometheus": {"/metrics"},
    }

    def use(world: World) -> None:
        with world.pod.started() as pod:
            pod.until_ready()
            for token, paths in allowed.items():
                for path in everything:
                    status, body = pod.get(path, token)
                    assert status == (200 if path in paths else 403), (token, path, body)
            for path in everything:
                assert pod.get(path)[0] == pod.get(path, "nobody's")[0] == 401
            assert b"specmux_auth_up 1.0" in pod.get("/metrics", "prometheus")[1]
            assert pod.get("/livez")[0] == 200
            assert not any(token in pod.process.output for token in ("alice", "ours-1", "nobody's"))

    run(tmp_path, default_chart(), lambda world: asyncio.to_thread(use, world))


def test_token_of_the_account_is_exchanged_without_a_pause(tmp_path: Path) -> None:
    def use(world: World) -> None:
        cluster = world.cluster
        with world.pod.started(
            SPECMUX_AUTH_CACHE_SECONDS="0",
            SPECMUX_AUTH_REVIEW_GRACE="0",
            SPECMUX_POLLING_INTERVAL="0.1",
        ) as pod:
            pod.until_ready()
            cluster.accounts["ours-2"] = OURS
            world.pod.exchange_token("ours-2")
            is_new = lambda: cluster.requests[-1].headers["Authorization"] == "Bearer ours-2"  # noqa: E731
            pod.process.until(is_new, "the new token is shown")
            del cluster.accounts["ours-1"]
            asked = len(cluster.requests)
            world.do(cluster.cut_watches)
            for watched in (API_SERVICES, CRDS):
                pod.process.until(
                    lambda watched=watched: any(
                        seen.target.startswith(watched) for seen in cluster.requests[asked:]
                    ),
                    "watched again",
                )
            gadgets = definition("Gadget", group="new.example.com")
            world.do(accept_definition, cluster, gadgets)
            pod.process.until(
                lambda: "apis/new.example.com/v1" in pod.json("/openapi/v3", "alice")["paths"], "published"
            )
            assert {seen.headers["Authorization"] for seen in cluster.requests[asked:]} == {"Bearer ours-2"}
            assert cluster.strangers == []
            assert pod.get("/readyz")[0] == 200
            expect_quick_end(pod)

    run(tmp_path, default_chart(), lambda world: asyncio.to_thread(use, world))


def test_account_whose_token_ran_out_lets_nobody_in_until_it_has_the_next(tmp_path: Path) -> None:
    def use(world: World) -> None:
        with world.pod.started(
            SPECMUX_AUTH_CACHE_SECONDS="0",
            SPECMUX_AUTH_REVIEW_GRACE="0",
            SPECMUX_POLLING_INTERVAL="0.1",
        ) as pod:
            pod.until_ready()
            del world.cluster.accounts["ours-1"]
            assert pod.get("/openapi/v3", "alice")[0] == 503
            status, body = pod.get("/readyz")
            assert status == 503
            assert body == b"nobody can be let in: the cluster's token review fails (credentials)\n"
            assert pod.get("/livez")[0] == 200
            world.cluster.accounts["ours-2"] = OURS
            world.pod.exchange_token("ours-2")
            pod.until_ready()
            assert set(pod.json("/openapi/v3", "alice")["paths"]) == {APPS, METRICS, WIDGETS}

    run(tmp_path, default_chart(), lambda world: asyncio.to_thread(use, world))


@needs_helm
def test_without_sources_the_cluster_is_asked_for_reviews_and_nothing_else(tmp_path: Path) -> None:
    chart = rendered("crd-manifests")

    def use(world: World) -> None:
        accepted = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
        manifest = world.pod.folder / "etc/specmux-crds/widgets.yaml"
        manifest.write_text(yaml.safe_dump({**accepted, **definition("Widget")}))
        with world.pod.started() as pod:
            pod.until_ready()
            (item,) = pod.json("/openapi/v3", "alice")["paths"].values()
            assert pod.get(item["serverRelativeURL"], "alice")[0] == 200
            assert pod.get("/openapi/v3", "bob")[0] == 403
            assert pod.get("/metrics", "prometheus")[0] == 200
            expect_quick_end(pod)
        assert {seen.target for seen in world.cluster.requests} == {TOKEN_REVIEWS, ACCESS_REVIEWS}
        assert world.cluster.access.refused == []
        assert world.unused() == set()

    run(tmp_path, chart, lambda world: asyncio.to_thread(use, world))


@pytest.mark.long
def test_image_runs_the_default_values_and_takes_over_an_exchanged_token(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Everything at its own place: nobody's process, a read-only root, files as fsGroup leaves them."""

    def use(world: World) -> None:
        cluster = world.cluster
        with world.pod.started(SPECMUX_AUTH_CACHE_SECONDS="0") as pod:
            pod.until_ready()
            for item in pod.json("/openapi/v3", "alice")["paths"].values():
                assert pod.get(item["serverRelativeURL"], "alice")[0] == 200
            cluster.accounts["ours-2"] = OURS
            world.pod.exchange_token("ours-2")
            pod.process.until(
                lambda: (
                    pod.get("/openapi/v3", "alice")[0] == 200
                    and cluster.requests[-1].headers["Authorization"] == "Bearer ours-2"
                ),
                "the new token is shown",
            )
            expect_quick_end(pod)
        assert (world.pod.folder / "var/cache/specmux/state").stat().st_uid == 65532
        assert cluster.access.refused == []
        assert cluster.strangers == []

    image = gathered(tmp_path_factory)
    run(tmp_path, default_chart(), lambda world: asyncio.to_thread(use, world), image=image)


def test_new_certificate_authority_of_the_cluster_is_taken_over(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        with world.pod.started(
            SPECMUX_AUTH_CACHE_SECONDS="0",
            SPECMUX_AUTH_REVIEW_GRACE="0",
            SPECMUX_POLLING_INTERVAL="0.1",
        ) as pod:
            await asyncio.to_thread(pod.until_ready)
            await world.cluster.stop()
            bundle = world.change_authority()
            await world.cluster.start()
            refused = "nobody can be let in: the cluster's token review fails (bad_tls)"

            def is_refused() -> bool:
                pod.get("/openapi/v3", "alice")
                return refused in pod.get("/readyz")[1].decode()

            await asyncio.to_thread(pod.process.until, is_refused, "the new certificate is refused")
            (world.pod.account / "ca.crt").write_bytes(bundle)
            await asyncio.to_thread(pod.until_ready)
            await asyncio.to_thread(pod.json, "/openapi/v3", "alice")
            for watched in (API_SERVICES, CRDS):
                await world.cluster.until_watched(watched)

    run(tmp_path, default_chart(), scenario)


@needs_helm
def test_services_that_are_shown_the_token_let_it_read_what_the_chart_asks_for(tmp_path: Path) -> None:
    """They ask the cluster, which grants the account its rights there as well."""
    file = "/var/run/secrets/kubernetes.io/serviceaccount/token"
    chart = rendered(
        "default",
        f"--set=config.kubernetes.service_token_file={file}",
        "--set=config.kubernetes.apiserver=false",
    )

    def use(world: World) -> None:
        world.extension.tokens = {"ours-1"}
        with world.pod.started() as pod:
            pod.until_ready()
            paths = pod.json("/openapi/v3", "alice")["paths"]
            assert set(paths) == {METRICS, WIDGETS}
            assert pod.get(paths[METRICS]["serverRelativeURL"], "alice")[0] == 200
            pod.process.until(lambda: Right("get", "/apis") in asked_of(world.extension), "discovery")
        asked = asked_of(world.extension)
        assert Right("get", "/openapi/v3") in asked
        assert all(world.cluster.access.allows(OURS, right) for right in asked), asked
        assert world.cluster.access.refused == []

    run(tmp_path, chart, lambda world: asyncio.to_thread(use, world))
