"""An extension apiserver of two replicas with different definitions, behind one APIService of an aggregator.

The sample apiserver's kinds are compiled in; two more kube-apiservers, each with its own etcd, have what
definitions say.
"""

from __future__ import annotations

import itertools
import json
import shutil
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from cluster.balancer import balancing
from cluster.binaries import Binaries
from cluster.control_plane import ControlPlane
from cluster.objects import as_list, crd
from cluster.serving import document, front_proxy, serving, until

READS = 1000
GROUP = "replicas.example.com"
KEY = f"apis/{GROUP}/v1"

pytestmark = pytest.mark.timeout(900)


class Replica(ControlPlane):
    """A control plane that believes the aggregator of ``main``."""

    def __init__(self, main: ControlPlane, binaries: Binaries, folder: Path) -> None:
        super().__init__(binaries, folder)
        self._main = main

    def _certificates(self) -> None:
        super()._certificates()
        shutil.copy(self._main.folder / "front-proxy-ca.crt", self.folder)


def registration(port: int) -> str:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "replicas", "namespace": "default"},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
    }
    reached = {"name": "replicas", "namespace": "default", "port": port}
    registered = {
        "apiVersion": "apiregistration.k8s.io/v1",
        "kind": "APIService",
        "metadata": {"name": f"v1.{GROUP}"},
        "spec": {
            "group": GROUP,
            "version": "v1",
            "groupPriorityMinimum": 1000,
            "versionPriority": 15,
            "insecureSkipTLSVerify": True,  # two replicas, two authorities
            "service": reached,
        },
    }
    return as_list(service, registered)


def test_replicas_with_different_definitions_are_one(
    plane: ControlPlane, tmp_path: Path, tally: Callable[[str, int], None]
) -> None:
    sets: tuple[list[dict[str, Any]], ...] = (
        [crd("Alpha", group=GROUP)],
        [crd("Alpha", group=GROUP), crd("Beta", group=GROUP)],
    )
    with ExitStack() as opened:
        replicas = []
        for number, items in enumerate(sets):
            replica = opened.enter_context(Replica(plane, plane.binaries, tmp_path / f"replica-{number}"))
            replica.apply(as_list(*items))
            until(lambda one=replica: KEY in one.json("/openapi/v3")["paths"], "a replica has its own")
            replicas.append(replica)
        balancer = opened.enter_context(balancing(*(each.port for each in replicas)))
        plane.apply(registration(balancer.port))
        opened.callback(plane.kubectl, "delete", "apiservice", f"v1.{GROUP}")
        plane.kubectl("wait", "--for=condition=Available", "--timeout=90s", f"apiservice/v1.{GROUP}")
        shown = opened.enter_context(front_proxy(plane))
        process = opened.enter_context(
            serving(plane, tmp_path, kubernetes=shown, polling={"interval": 2, "removal_grace": 15})
        )
        until(lambda: KEY in process.paths(), "published")
        wanted = [each.json(f"/openapi/v3/{KEY}") for each in replicas]

        def servers() -> Any:
            return json.loads(process.get("/status")[2])["backends"][f"v1.{GROUP}"]["servers"]

        until(servers, "both are known")
        served = json.loads(document(process, KEY)[2])
        assert served in wanted
        statuses: Counter[int] = Counter()
        hashes = []
        while statuses.total() < READS:
            target = process.paths()[KEY]
            hashes.append(target)
            status, _, body = process.get(target)
            statuses[status] += 1
            assert json.loads(body) == served
        changes = sum(before != after for before, after in itertools.pairwise(hashes))
        told = servers()
        print(statuses, changes, told and told["summary"])
        assert statuses == {200: READS}
        assert changes == 0
        assert f"different documents: {KEY}" in told["summary"]
    tally("reads of two replicas with different definitions, all 200", READS)
