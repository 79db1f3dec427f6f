"""``specmux conformance`` against a real apiserver: its known deviations (docs/check.md) and no others."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from cluster.control_plane import ControlPlane
from cluster.serving import until
from fakes.apiserver_deviations import KNOWN, SHARED, WITH_AGGREGATION
from specmux_tools.conformance import PROMISES


def deviations(plane: ControlPlane, home: Path) -> dict[str, list[str]]:
    """Faults by promise."""
    command = [sys.executable, "-m", "specmux_aggregator.cli", "conformance", "-o", "json"]
    done = subprocess.run(
        [*command, "--kubeconfig", str(plane.admin)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env={**os.environ, "HOME": str(home)},
    )
    assert done.returncode == 1, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    assert len(told["promises"]) == len(PROMISES)
    assert all(each["tried"] for each in told["promises"])
    return {each["name"]: each["faults"] for each in told["promises"] if not each["kept"]}


def test_apiserver_has_its_known_deviations_and_no_others(plane: ControlPlane, tmp_path: Path) -> None:
    plane.start_wardle()
    listed = "apis/wardle.example.com/v1beta1"
    until(lambda: listed in plane.json("/openapi/v3")["paths"], "wardle's documents are aggregated")
    found = deviations(plane, tmp_path)
    assert found.keys() >= KNOWN
    assert found.keys() <= KNOWN | WITH_AGGREGATION, found
    others = [fault for name in found.keys() - KNOWN for fault in found[name]]
    assert all(fault.split(":")[0] in SHARED for fault in others), others
    for fault in found["stale-hash"]:
        key = fault.split(":")[0]
        if key.startswith("apis/wardle.example.com"):
            assert ": 502, " in fault  # a 301 from behind kube-aggregator
        elif key not in SHARED:
            assert "drops the other parameters" in fault
