"""kubectl with a user's kubeconfig, TLS and tokens, in front of the chart's pod that passes resources on."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import orjson
import pytest

from fakes.custom_objects import CustomObjects
from fakes.discovery import resource
from fakes.role_based_access import Right
from running.chart_pod import NAME, RunningPod
from running.chart_world import OURS, PER_GROUP, World, rendered, world
from running.cluster_service import WIDGETS
from running.helm_chart import needs_helm
from running.kubectl import KUBECTLS, Kubectl

pytestmark = [needs_helm, pytest.mark.skipif(not KUBECTLS, reason="no kubectl on this machine")]

WIDGET = "apiVersion: example.com/v1\nkind: Widget\nmetadata: {name: one}\nspec: {size: 3}\n"
VERBS = ["create", "delete", "get", "list", "patch", "update", "watch"]


@dataclass(frozen=True)
class Desk:
    """Users of a running pod."""

    world: World
    pod: RunningPod
    widgets: CustomObjects

    def kubectl(self, token: str) -> Kubectl:
        home = self.world.pod.folder.parent / token
        home.mkdir(exist_ok=True)
        server = {
            "server": f"https://127.0.0.1:{self.pod.process.port}",
            "tls-server-name": NAME,
            "certificate-authority": str(self.world.pod.folder / "etc/specmux-tls/ca.crt"),
        }
        config = home / "kubeconfig"
        config.write_bytes(
            orjson.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "current-context": "c",
                    "clusters": [{"name": "c", "cluster": server}],
                    "users": [{"name": "c", "user": {"token": token}}],
                    "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
                }
            )
        )
        return Kubectl(f"--kubeconfig={config}", home=home, program=KUBECTLS[-1])


def run(folder: Path, scenario: Callable[[Desk], Awaitable[None]]) -> None:
    async def main() -> None:
        async with world(folder / "pod", rendered("proxy-resources")) as made:
            cluster = made.cluster
            widgets = CustomObjects(WIDGETS, "widgets", "Widget", spec_fields={"size"})
            cluster.custom_objects.append(widgets)
            assert cluster.discovery.lists is not None
            cluster.discovery.lists[WIDGETS] = [resource(WIDGETS, "widgets", "Widget", verbs=VERBS)]
            rule = {"apiGroups": ["example.com"], "resources": ["widgets"], "verbs": VERBS}
            cluster.access.grant("User alice", rule)
            with made.pod.started() as pod:
                await asyncio.to_thread(pod.until_ready)
                await scenario(Desk(made, pod, widgets))
                assert await asyncio.to_thread(pod.process.stop) == 0
                assert "Traceback" not in pod.process.output
            assert made.unused() == PER_GROUP
            assert OURS.name not in {name for name, _ in cluster.access.refused}

    asyncio.run(main())


def test_user_explains_and_lists_over_tls_with_a_token(tmp_path: Path) -> None:
    async def scenario(desk: Desk) -> None:
        kubectl = desk.kubectl("alice")
        explained = await kubectl.good("explain", "widgets")
        assert re.search(r"GROUP: +example.com\nKIND: +Widget\nVERSION: +v1\n", explained)
        listed = (await kubectl.good("api-resources", "--no-headers", "-o", "name")).split()
        assert set(listed) >= {"pods", "deployments.apps", "widgets.example.com"}
        assert "Server Version: v1.33.0" in await kubectl.good("version")
        prometheus = desk.kubectl("prometheus")
        assert "specmux_auth_up 1.0\n" in await prometheus.good("get", "--raw", "/metrics")

    run(tmp_path, scenario)


def test_user_who_is_refused_reads_why(tmp_path: Path) -> None:
    async def scenario(desk: Desk) -> None:
        said = {
            ("alice", "/metrics"): 'Error from server (Forbidden): user "alice" cannot get path "/metrics"',
            ("bob", "/apis"): 'Error from server (Forbidden): user "bob" cannot get path "/apis"',
            ("stranger", "/metrics"): "error: You must be logged in to the server "
            "(the bearer token is not accepted)",
        }
        for (token, path), line in said.items():
            assert await desk.kubectl(token)("get", "--raw", path) == (1, "", f"{line}\n")
        # What kubectl makes of a refused list of groups: it does not read the Status there.
        code, _, errors = await desk.kubectl("bob")("explain", "widgets")
        assert (code, errors.splitlines()[-1]) == (1, "Error from server (Forbidden): unknown")

    run(tmp_path, scenario)


def test_user_creates_reads_applies_and_deletes_objects(tmp_path: Path) -> None:
    async def scenario(desk: Desk) -> None:
        kubectl, objects = desk.kubectl("alice"), desk.widgets.objects
        assert await kubectl.good("create", "--save-config", "-f", "-", given=WIDGET) == (
            "widget.example.com/one created\n"
        )
        assert (await kubectl.good("get", "widgets", "-o", "name")) == "widget.example.com/one\n"
        assert re.search(r"NAME +AGE\none +\d", await kubectl.good("get", "widget", "one"))
        larger = WIDGET.replace("3", "4")
        assert await kubectl.good("apply", "-f", "-", given=larger) == "widget.example.com/one configured\n"
        assert objects["one"]["spec"] == {"size": 4}
        assert await kubectl.good("apply", "-f", "-", given=larger) == "widget.example.com/one unchanged\n"
        two = WIDGET.replace("one", "two")
        for size in ("3", "5"):
            given = two.replace("3", size)
            assert await kubectl.good("apply", "--server-side", "-f", "-", given=given) == (
                "widget.example.com/two serverside-applied\n"
            )
            assert objects["two"]["spec"] == {"size": int(size)}
        assert objects["two"]["metadata"]["managedFields"] == [{"manager": "kubectl", "operation": "Apply"}]
        assert await kubectl.good("delete", "widget", "one", "two") == (
            'widget.example.com "one" deleted\nwidget.example.com "two" deleted\n'
        )
        assert objects == {}
        tokens = {seen.headers["Authorization"] for seen in desk.world.cluster.seen(desk.widgets.root)}
        assert tokens == {"Bearer alice"}
        assert desk.world.cluster.access.refused == []

    run(tmp_path, scenario)


def test_unknown_field_is_found_by_the_server_that_our_document_sends_kubectl_to(tmp_path: Path) -> None:
    async def scenario(desk: Desk) -> None:
        kubectl = desk.kubectl("alice")
        strict = ("create", "--validate=strict", "-f", "-")
        code, _, errors = await kubectl(*strict, given=WIDGET.replace("size", "sizes"))
        assert (code, desk.widgets.objects) == (1, {})
        assert 'strict decoding error: unknown field "spec.sizes"' in errors
        assert await kubectl.good(*strict, given=WIDGET) == "widget.example.com/one created\n"
        # Had kubectl validated by itself, it would have read this one.
        assert desk.world.cluster.seen("/openapi/v2") == []

    run(tmp_path, scenario)


def test_cluster_refuses_what_a_known_user_may_not(tmp_path: Path) -> None:
    """Here it is enough to be known; the resource is the cluster's to guard, in the user's own name."""

    async def scenario(desk: Desk) -> None:
        code, _, errors = await desk.kubectl("bob")("get", "--raw", f"{desk.widgets.root}")
        assert (code, errors) == (1, "Error from server (Forbidden): Forbidden\n")
        assert desk.world.cluster.access.refused == [("bob", Right("list", "example.com/widgets"))]
        count = len(desk.world.cluster.seen(desk.widgets.root))
        assert (await desk.kubectl("stranger")("get", "--raw", desk.widgets.root))[0] == 1
        assert len(desk.world.cluster.seen(desk.widgets.root)) == count

    run(tmp_path, scenario)
