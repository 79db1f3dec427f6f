"""Hundreds of definitions at once: how soon they are there, and at what cost, beside the apiserver."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster.binaries import Binaries
from cluster.control_plane import ControlPlane
from cluster.objects import as_list, crd
from cluster.serving import Looking, document, serving, until
from running.process import Process
from running.processor_time import cpu_of

DEFINITIONS = int(os.environ.get("SPECMUX_CLUSTER_DEFINITIONS", "300"))
GROUPS = 75

pytestmark = pytest.mark.timeout(1800)


def test_hundreds_of_definitions_are_there_with_the_apiservers(
    binaries: Binaries, tmp_path: Path, tally: Callable[[str, int], None]
) -> None:
    items = [
        crd(f"Kind{number}", group=f"g{number % GROUPS}.many.example.com") for number in range(DEFINITIONS)
    ]
    keys = {f"apis/g{number}.many.example.com/v1" for number in range(GROUPS)}
    with ControlPlane(binaries, tmp_path / "cluster") as plane:  # to delete them takes minutes
        with serving(plane, tmp_path / "s") as process, Looking(process, set()) as looking:
            before = cpu_of(process.pid), cpu_of(plane.pid("apiserver"))
            plane.apply(as_list(*items))
            began = time.monotonic()
            until(lambda: keys <= set(process.paths()), "the root is whole", 600)
            whole = time.monotonic() - began
            until(lambda: keys <= plane.json("/openapi/v3")["paths"].keys(), "the apiserver's too", 600)
            behind = time.monotonic() - began
            until(lambda: _equal(plane, process, keys) == len(keys), "documents are the apiserver's", 300)
            after = cpu_of(process.pid), cpu_of(plane.pid("apiserver"))
        assert looking.looks
        assert looking.failures == looking.missing == []
        print(
            f"{DEFINITIONS} definitions: whole {whole:.1f} s after the last, the apiserver {behind:.1f} s;"
            f" CPU {after[0] - before[0]:.1f} and {after[1] - before[1]:.1f} s"
        )
        with serving(plane, tmp_path / "cold") as process:
            assert keys <= set(process.paths())
        tally("documents of hundreds of definitions deep-equal to the apiserver's", len(keys))


def _equal(plane: ControlPlane, process: Process, keys: set[str]) -> int:
    return sum(
        json.loads(document(process, key)[2]) == plane.json(f"/openapi/v3/{key}") for key in sorted(keys)
    )
