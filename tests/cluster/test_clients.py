"""Clients of Kubernetes at the apiserver, and beside that through specmux, which passes resources on."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cluster.binaries import CACHE, Unbuildable
from cluster.control_plane import ControlPlane
from cluster.objects import STREAMER, as_list, crd
from cluster.serving import discovered, front_proxy, serving, tls, until
from shared_data import SHARED

TABLE = SHARED / "tools" / "real-cluster" / "kubectl_suite.py"
KNOWN = re.compile("get --raw")
"""Of what is answered here, the text: spaces, hashes, the order of keys (docs/discovery.md, Limits)."""
PYTHON_CLIENTS = (
    "kubernetes==37.0.2",
    "kubernetes_asyncio==36.1.0",
    "lightkube==1.0.1",
    "kr8s==0.20.15",
    "kopf==1.45.2",
)
INFORMERS = 126
CHART = Path(__file__).parent / "chart"

pytestmark = pytest.mark.timeout(1800)


@dataclass(frozen=True, slots=True)
class Doors:
    """Two kubeconfigs of one account."""

    direct: Path
    through: Path

    def __iter__(self) -> Iterator[Path]:
        return iter((self.direct, self.through))


@pytest.fixture(scope="module")
def doors(plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Doors]:
    plane.apply(STREAMER)
    plane.apply(as_list(crd("Rollout", group="rollouts.example.com"), crd("Bed", group="beds.example.com")))
    folder = tmp_path_factory.mktemp("clients")
    token = plane.token("default", "streamer")
    with (
        front_proxy(plane) as shown,
        serving(plane, folder, kubernetes=shown, proxy={"resources": True}, listen=tls(plane)) as process,
    ):
        until(lambda: "apis/rollouts.example.com/v1" in discovered(process), "listed")
        yield Doors(
            plane.kubeconfig("direct", token=token),
            plane.kubeconfig("through", token=token, server=f"https://127.0.0.1:{process.port}"),
        )
    plane.kubectl("delete", "crd", "rollouts.rollouts.example.com", "beds.beds.example.com")


def printed(*command: str | Path, **environment: str) -> str:
    done = subprocess.run(
        list(map(str, command)),
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, (command, done.stderr[-2000:])
    return done.stdout


def test_informers_of_every_resource_sync(
    plane: ControlPlane, doors: Doors, tally: Callable[[str, int], None]
) -> None:
    program = plane.binaries.informers
    direct, through = (json.loads(printed(program, door)) for door in doors)
    assert through["informers"] == direct["informers"] >= INFORMERS
    assert (through["synced"], through["saw"]) == (through["informers"], 2), through
    assert through["errors"] == direct["errors"] == {}
    tally("informers of client-go that sync through the relay without an error", through["synced"])


def test_helm_prints_the_same(plane: ControlPlane, doors: Doors, tmp_path: Path) -> None:
    try:
        helm = plane.binaries.helm
    except Unbuildable as fault:
        pytest.skip(f"Helm cannot be built here: {fault}")
    outputs = []
    for door in doors:
        lines = []
        home = {name: str(tmp_path / door.stem / name) for name in HELM_FOLDERS}
        for command in HELM_COMMANDS:
            done = subprocess.run(
                [str(helm), f"--kubeconfig={door}", "--namespace=default", *command],
                env={**os.environ, **home},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=300,
                check=False,
            )
            lines += [" ".join(command), str(done.returncode), *(done.stdout + done.stderr).splitlines()]
        plane.kubectl("delete", "crd", "pots.garden.example.org")
        outputs.append([TIMES.sub("T", line).replace(str(door), "CONFIG") for line in lines])
    direct, through = outputs
    assert through == direct
    codes = [line for line in direct if line in ("0", "1")]
    assert codes == ["0", "0", "1", "0", "0", "0"], direct


HELM_FOLDERS = ("HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME", "HOME")
HELM_COMMANDS = (
    ("install", "pots", str(CHART), "--set=size=1"),
    ("upgrade", "pots", str(CHART), "--set=size=2"),
    ("upgrade", "pots", str(CHART), "--set=size=wrong"),
    ("rollback", "pots", "1"),
    ("get", "manifest", "pots"),
    ("uninstall", "pots"),
)
TIMES = re.compile(r"[A-Z][a-z]{2} [A-Z][a-z]{2} +\d+ [\d:]+ \d{4}|127\.0\.0\.1:\d+|[\w.-]*go:\d+:")


def test_clients_of_python_see_the_same(doors: Doors) -> None:
    packages = CACHE / "python-clients"
    installed, wanted = packages / "installed.txt", "\n".join(PYTHON_CLIENTS)
    if not installed.exists() or installed.read_text() != wanted:
        shutil.rmtree(packages, ignore_errors=True)
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(packages)]
        done = subprocess.run(
            [*command, *PYTHON_CLIENTS], capture_output=True, text=True, timeout=600, check=False
        )
        if done.returncode:
            pytest.skip(f"the clients cannot be installed here: {done.stderr[-300:]}")
        installed.write_text(wanted)
    script = Path(__file__).parent / "python_clients.py"
    direct, through = (
        json.loads(printed(sys.executable, script, door, PYTHONPATH=str(packages))) for door in doors
    )
    assert through == direct
    assert len(direct["kubernetes"]["resources"]) > 60
    assert len(direct["kr8s"]["resources"]) > 60
    assert direct["kopf"] == {"seen": ["come 7", "written None 7"]}


@pytest.mark.skipif(not TABLE.exists(), reason="the table of commands is not beside this checkout")
def test_commands_of_kubectl_print_the_same(
    doors: Doors, tmp_path: Path, tally: Callable[[str, int], None]
) -> None:
    out = tmp_path / "table.json"
    (tmp_path / "rc").mkdir()
    subprocess.run(
        [sys.executable, str(TABLE), "kubectl", str(doors.direct), str(doors.through), str(out)],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        check=True,
        timeout=1500,
    )
    rows: list[dict[str, Any]] = json.loads(out.read_text())
    different = [row for row in rows if row["kind"] != "equal" and not _is_by_chance(row)]
    unknown = [
        (row["cmd"], row["direct"], row["other"]) for row in different if not KNOWN.search(str(row["cmd"]))
    ]
    tally("commands of kubectl that print the same", len(rows) - len(different))
    assert len(rows) > 200
    assert unknown == []


def _is_by_chance(row: dict[str, Any]) -> bool:
    """Whether nothing differs but what the apiserver orders by its clock: components as its probes of them
    end, and managedFields by the second of their writing."""
    if "ClusterIPNotAllocated" in json.dumps(row):  # an event of the apiserver's repair, every few minutes
        return True
    if row["kind"] == "order":
        return str(row["cmd"]) == "get componentstatuses"
    try:
        sides = [(row[side][0], json.loads(row[side][1])) for side in ("direct", "other")]
        for _, answer in sides:
            metadata = answer["metadata"]
            for name in ("uid", "resourceVersion", "creationTimestamp", "namespace"):
                del metadata[name]
            metadata["managedFields"].sort(key=lambda field: field["manager"])
            for field in metadata["managedFields"]:
                del field["time"]
    except (ValueError, KeyError, TypeError):
        return False
    return sides[0] == sides[1]
