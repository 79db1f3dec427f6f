"""Two apiservers of two releases on one etcd, behind nginx: as during an upgrade of a control plane."""

from __future__ import annotations

import itertools
import json
import os
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from cluster.binaries import VERSION, Binaries
from cluster.control_plane import ControlPlane, free_ports
from cluster.nginx import nginx
from cluster.serving import serving, until
from running.process import Process

NEWER = os.environ.get("SPECMUX_CLUSTER_NEWER", "v1.37.2")
READS = int(os.environ.get("SPECMUX_CLUSTER_READS", "10000"))
READERS = 4

pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def newer() -> Binaries:
    made = Binaries(NEWER)
    if NEWER == VERSION:
        pytest.skip(f"two releases are wanted, and the cluster is of {NEWER} already: SPECMUX_CLUSTER_NEWER")
    if not made.is_built:
        pytest.skip(f"Kubernetes {NEWER} is not built here: SPECMUX_CLUSTER_VERSION={NEWER} make cluster")
    return made


class Reading:
    """Reads the root and all that it lists, again and again."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self.statuses: Counter[str] = Counter()
        self.roots: list[dict[str, str]] = []

    def read(self, is_over: Callable[[int], bool]) -> None:
        with ThreadPoolExecutor(READERS) as pool:
            while not is_over(self.reads):
                status, _, body = self._process.get("/openapi/v3")
                self.statuses[f"root {status}" if status != 200 else "200"] += 1
                if status != 200:
                    continue
                paths = {key: at["serverRelativeURL"] for key, at in json.loads(body)["paths"].items()}
                if not self.roots or self.roots[-1] != paths:
                    self.roots.append(paths)
                self.statuses.update(pool.map(self._document, paths.items()))

    def _document(self, item: tuple[str, str]) -> str:
        key, target = item
        status, headers, _ = self._process.get(target)
        if status == 301:
            where = headers["Location"]
            status = self._process.get(f"/openapi/v3/{key}{where[where.index('?') :]}")[0]
        return "200" if status == 200 else f"{key} {status}"

    @property
    def reads(self) -> int:
        return sum(self.statuses.values())

    @property
    def changes(self) -> list[list[str]]:
        """Of each change of the root, what was another."""
        return [
            sorted(key for key in before.keys() | after.keys() if before.get(key) != after.get(key))
            for before, after in itertools.pairwise(self.roots)
        ]


@pytest.mark.parametrize("form", ["stream", "http"])
def test_two_releases_behind_nginx_are_one(
    plane: ControlPlane, newer: Binaries, tmp_path: Path, form: str, tally: Callable[[str, int], None]
) -> None:
    (port,) = free_ports(1)
    plane.launch("second", newer.apiserver, *plane.apiserver_arguments(port))
    try:
        plane.until_ready(port)
        with nginx(plane, tmp_path / "nginx", form, plane.port, port) as front:
            only = {
                each: set(json.loads(plane.get("/openapi/v3", port=each)[1])["paths"])
                for each in (plane.port, port)
            }
            both = set.union(*only.values())
            assert only[plane.port] != only[port]
            with serving(plane, tmp_path / "s", server=f"https://127.0.0.1:{front}") as process:
                until(lambda: both <= set(process.paths()), "what both have is published", 120)
                reading = Reading(process)
                reading.read(lambda reads: reads >= READS)
                told = json.loads(process.get("/status")[2])["backends"]["kubernetes"]["servers"]
        print(form, reading.statuses, reading.changes, told and told["summary"])
        assert set(reading.statuses) == {"200"}
        assert all(both <= root.keys() for root in reading.roots)
        assert len(reading.changes) <= 1, reading.changes
        tally(f"reads of two releases behind nginx ({form}), all 200", reading.reads)
    finally:
        plane.stop("second")


def test_rolling_exchange_of_two_apiservers(
    plane: ControlPlane, newer: Binaries, tmp_path: Path, tally: Callable[[str, int], None]
) -> None:
    """Each is ended and comes back as the next release; both are listed, as by their EndpointSlices."""
    first, second = free_ports(2)
    old, new = plane.binaries.apiserver, newer.apiserver
    for name, port in (("first", first), ("second", second)):
        plane.launch(name, old, *plane.apiserver_arguments(port))
        plane.until_ready(port)
    try:
        with (
            nginx(plane, tmp_path / "nginx", "stream", first, second) as front,
            serving(plane, tmp_path / "s", server=f"https://127.0.0.1:{front}") as process,
        ):
            everything = set(process.paths())
            reading = Reading(process)

            def exchange() -> None:
                time.sleep(10)
                for name, port in (("first", first), ("second", second)):
                    plane.stop(name)
                    plane.launch(name, new, *plane.apiserver_arguments(port))
                    plane.until_ready(port)
                    time.sleep(60)

            with ThreadPoolExecutor(1) as pool:
                exchanging = pool.submit(exchange)
                reading.read(lambda reads: exchanging.done())
                exchanging.result()
            print("exchange", reading.statuses, reading.changes)
            assert set(reading.statuses) == {"200"}
            kept = everything & set(json.loads(plane.get("/openapi/v3", port=first)[1])["paths"])
            assert all(kept <= root.keys() for root in reading.roots)
            tally("reads while two apiservers are exchanged, all 200", reading.reads)
    finally:
        for name in ("first", "second"):
            plane.stop(name)
