"""Apiservers that real EndpointSlices name: specmux follows them as they come, fail and go."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster.control_plane import ControlPlane, free_ports
from cluster.serving import serving, until
from running.process import Process

pytestmark = pytest.mark.timeout(900)

RIGHTS = """
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: specmux-endpoint-slices}
rules:
- {apiGroups: [discovery.k8s.io], resources: [endpointslices], verbs: [get, list, watch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: specmux-endpoint-slices}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: specmux-endpoint-slices}
subjects: [{kind: ServiceAccount, name: specmux, namespace: specmux}]
"""


def own_address() -> str:
    """Of this machine; endpoints on loopback are refused by an apiserver."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("203.0.113.1", 9))
        except OSError:
            pytest.skip("the machine has no address but loopback")
        address = str(probe.getsockname()[0])
    if address.startswith("127."):
        pytest.skip("the machine has no address but loopback")
    return address


def endpoint_slice(name: str, address: str, port: int, *, ready: bool = True) -> str:
    return json.dumps(
        {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": {
                "name": name,
                "namespace": "default",
                "labels": {"kubernetes.io/service-name": "kubernetes"},
            },
            "addressType": "IPv4",
            "endpoints": [{"addresses": [address], "conditions": {"ready": ready}}],
            "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
        }
    )


def summary(process: Process) -> str:
    told = json.loads(process.get("/status")[2])["backends"]["kubernetes"]["servers"]
    return str(told["summary"]) if told else "1 server"


def read_all(process: Process) -> list[tuple[str, int]]:
    found = [(key, process.get(target)[0]) for key, target in process.paths().items()]
    assert found
    return found


def test_endpoint_slices_of_the_apiservers_are_followed(
    plane: ControlPlane, tmp_path: Path, tally: Callable[[str, int], None]
) -> None:
    address, ports = own_address(), free_ports(2)
    plane.apply(RIGHTS)
    for name, port in zip(("first", "second"), ports, strict=True):
        arguments = [*plane.apiserver_arguments(port), "--bind-address=0.0.0.0"]
        plane.launch(name, plane.binaries.apiserver, *arguments)
        plane.until_ready(port)
    version = plane.json("/version")["gitVersion"]
    two = f"2 servers: 2 × {version}"
    try:
        polling = {"polling": {"interval": 2}, "kubernetes": {"endpoint_slices": "on"}}
        with serving(plane, tmp_path / "s", **polling) as process:
            reads = read_all(process)
            plane.apply(endpoint_slice("apiservers-a", address, ports[0]))
            assert summary(process) == "1 server"
            plane.apply(endpoint_slice("apiservers-b", address, ports[1]))
            until(lambda: summary(process) == two, "both are known")
            shown = json.loads(process.get("/status")[2])["backends"]["kubernetes"]["servers"]["servers"]
            assert {each["name"] for each in shown} == {f"{address}:{port}" for port in ports}
            reads += read_all(process)
            plane.kill("second")
            until(lambda: summary(process) == f"{two}; 1 of them fails", "the second is away")
            reads += read_all(process)
            plane.apply(endpoint_slice("apiservers-b", address, ports[1], ready=False))
            until(lambda: summary(process) == "1 server", "what is not ready is none")
            reads += read_all(process)
            plane.launch("second", plane.binaries.apiserver, *arguments)
            plane.until_ready(ports[1])
            plane.apply(endpoint_slice("apiservers-b", address, ports[1]))
            until(lambda: summary(process) == two, "it is back")
            plane.kubectl("-n", "default", "delete", "endpointslice", "apiservers-a", "apiservers-b")
            until(lambda: summary(process) == "1 server", "slices that are gone are forgotten")
            reads += read_all(process)
        assert [each for each in reads if each[1] != 200] == []
        tally("reads while EndpointSlices came and went, all 200", len(reads))
    finally:
        for name in ("first", "second"):
            plane.stop(name)
