"""What a control plane goes through, and what of it clients must not see."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cluster.control_plane import ControlPlane
from cluster.objects import as_list, crd
from cluster.serving import Looking, discovered, document, serving, until

RESTARTS = 10
GROUPS = 30

pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def groups(plane: ControlPlane) -> Iterator[set[str]]:
    """Definitions in groups of their own."""
    items = [crd("Thing", group=f"group{number}.example.com") for number in range(GROUPS)]
    plane.apply(as_list(*items))
    yield {f"apis/group{number}.example.com/v1" for number in range(GROUPS)}
    plane.kubectl("delete", "--wait=false", "crd", *(item["metadata"]["name"] for item in items))


def test_ten_restarts_of_the_apiserver_take_nothing_away(
    plane: ControlPlane, groups: set[str], tmp_path: Path, tally: Callable[[str, int], None]
) -> None:
    with serving(plane, tmp_path) as process:
        until(lambda: groups <= set(process.paths()) and groups <= discovered(process), "all are there")
        everything = set(process.paths())
        busy = _Load(plane)
        with Looking(process, everything) as looking, busy:
            for number in range(RESTARTS):
                plane.kill("apiserver")
                time.sleep(0.3 * (number % 3))
                plane.start_apiserver()
                time.sleep(4)
            time.sleep(20)
        assert looking.failures == []
        assert looking.missing == [], looking.missing[:3]
        assert looking.looks > 100
        tally("looks at root and discovery in ten restarts, nothing missing", looking.looks)
        until(lambda: _states(process) == {"synced"}, "watches stand", 30)
        plane.apply(as_list(crd("Late", group="late.example.com")))
        until(lambda: "apis/late.example.com/v1" in process.paths(), "news are seen again", 5)
        plane.kubectl("delete", "crd", "lates.late.example.com")  # waits until it is gone there
        until(lambda: "apis/late.example.com/v1" not in process.paths(), "and what goes", 5)


def test_documents_of_definitions_are_had_while_the_apiserver_is_away(
    plane: ControlPlane, groups: set[str], tmp_path: Path
) -> None:
    with serving(plane, tmp_path) as process:
        until(lambda: groups <= set(process.paths()), "all are there")
        plane.kill("apiserver")
        try:
            time.sleep(2)
            for key in sorted(groups):
                assert document(process, key)[0] == 200
        finally:
            plane.start_apiserver()


def test_dead_extension_apiserver_costs_nothing(plane: ControlPlane, tmp_path: Path) -> None:
    keys = {"apis/wardle.example.com/v1alpha1", "apis/wardle.example.com/v1beta1"}
    with serving(plane, tmp_path) as process:
        until(lambda: keys <= set(process.paths()) and keys <= discovered(process), "there")
        for key in keys:
            assert document(process, key)[0] == 200
        plane.kill("wardle")
        try:
            for _ in range(20):
                assert keys <= set(process.paths())
                assert keys <= discovered(process)
                assert [document(process, key)[0] for key in keys] == [200, 200]
                time.sleep(1)
        finally:
            plane.start_wardle()


def test_etcd_that_dies_takes_no_document_away(plane: ControlPlane, groups: set[str], tmp_path: Path) -> None:
    with serving(plane, tmp_path) as process:
        until(lambda: groups <= set(process.paths()), "all are there")
        everything = set(process.paths())
        plane.kill("etcd")
        try:
            for _ in range(10):
                assert everything <= set(process.paths())
                time.sleep(0.5)
        finally:
            plane.start_etcd()
            plane.until_ready()
        until(lambda: _states(process) == {"synced"}, "watches stand", 60)


def _states(process: object) -> set[str]:
    import json

    status = json.loads(process.get("/status")[2])  # type: ignore[attr-defined]
    return {watch["state"] for watch in status["sources"]["kubernetes"]["watches"].values()}


class _Load:
    """Definitions that come and go in a thread, whatever becomes of each request."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(180)
        self._plane.kubectl("delete", "--ignore-not-found", "crd", "loads.load.example.com")

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._plane.apply(as_list(crd("Load", group="load.example.com")))
                time.sleep(0.5)
                self._plane.kubectl("delete", "--ignore-not-found", "crd", "loads.load.example.com")
            except AssertionError:
                time.sleep(0.2)
