"""Clusters that are built otherwise: several apiservers behind one address, metrics-server, streams into
containers."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster.balancer import balancing
from cluster.binaries import Unbuildable
from cluster.control_plane import ControlPlane, free_ports
from cluster.objects import METRICS_SERVER, STREAMER, as_list, crd
from cluster.serving import Looking, discovered, document, front_proxy, serving, until

pytestmark = pytest.mark.timeout(1800)


def test_several_apiservers_behind_one_address_are_one(
    plane: ControlPlane, tmp_path: Path, tally: Callable[[str, int], None]
) -> None:
    (port,) = free_ports(1)
    plane.apply(as_list(crd("Shared", group="shared.example.com")))
    plane.launch("second", plane.binaries.apiserver, *plane.apiserver_arguments(port))
    try:
        plane.until_ready(port)
        with balancing(plane.port, port) as balancer:
            server = f"https://127.0.0.1:{balancer.port}"
            with serving(plane, tmp_path, server=server, polling={"interval": 1}) as process:
                key = "apis/shared.example.com/v1"
                until(lambda: key in process.paths() and key in discovered(process), "published")
                wanted = set(process.paths())
                with Looking(process, wanted) as looking:
                    for victim in ("second", "apiserver", "second"):
                        plane.kill(victim)
                        time.sleep(3)
                        if victim == "apiserver":
                            plane.start_apiserver()
                        else:
                            plane.launch("second", plane.binaries.apiserver, *plane.apiserver_arguments(port))
                            plane.until_ready(port)
                        time.sleep(5)
                assert looking.failures == []
                assert looking.missing == [], looking.missing[:3]
                tally("looks while one of two apiservers is killed, nothing missing", looking.looks)
    finally:
        plane.stop("second")
        plane.kubectl("delete", "crd", "shareds.shared.example.com")


def test_metrics_server_is_served_with_its_own_documents(plane: ControlPlane, tmp_path: Path) -> None:
    try:
        program = plane.binaries.metrics_server
    except Unbuildable as fault:
        pytest.skip(f"metrics-server cannot be built here: {fault}")
    port = plane.start_metrics_server(program)
    bundle = b64encode((plane.folder / "wardle-ca.crt").read_bytes()).decode()
    plane.apply(METRICS_SERVER.format(port=port, bundle=bundle))
    key = "apis/metrics.k8s.io/v1beta1"
    try:
        plane.kubectl(
            "wait", "--for=condition=Available", "--timeout=90s", "apiservice/v1beta1.metrics.k8s.io"
        )
        with front_proxy(plane) as shown, serving(plane, tmp_path, kubernetes=shown) as process:
            until(lambda: key in discovered(process) and key in process.paths(), "published")
            status = json.loads(process.get("/status")[2])
            assert status["groupVersions"][key]["owner"] == "v1beta1.metrics.k8s.io"
            body = json.loads(document(process, key)[2])
            assert "/apis/metrics.k8s.io/v1beta1/nodes" in body["paths"]
    finally:
        plane.kubectl("delete", "apiservice", "v1beta1.metrics.k8s.io")
        plane.stop("metrics-server")


@pytest.mark.parametrize("how", ["exec", "attach"])
def test_streams_into_a_container_are_refused_in_words(plane: ControlPlane, tmp_path: Path, how: str) -> None:
    """They need a connection that becomes another protocol, which is not passed on (docs/proxying.md)."""
    plane.apply(STREAMER)
    token = plane.token("default", "streamer")
    with serving(plane, tmp_path, proxy={"resources": True}) as process:
        path = f"/api/v1/namespaces/default/pods/sleeper/{how}?container=main&stdout=true&command=true"
        for fields in (
            {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"},
            {"Connection": "Upgrade", "Upgrade": "SPDY/3.1"},
        ):
            status, _, body = process.get(path, Authorization=f"Bearer {token}", **fields)
            assert status == 501, body
            assert json.loads(body)["kind"] == "Status"
