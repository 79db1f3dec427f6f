"""One control plane for all tests of this folder. They run with ``make cluster`` and nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.binaries import Binaries, Unbuildable, obstacles
from cluster.control_plane import ControlPlane

IS_WANTED = bool(os.environ.get("SPECMUX_CLUSTER"))

collect_ignore_glob = [] if IS_WANTED else ["test_*.py"]


@pytest.fixture(scope="session")
def binaries() -> Binaries:
    for obstacle in obstacles():
        pytest.skip(obstacle)
    made = Binaries()
    try:
        assert made.etcd and made.apiserver and made.wardle
    except Unbuildable as fault:
        pytest.skip(f"Kubernetes {made.version} cannot be built here: {fault}")
    return made


@pytest.fixture(scope="session")
def plane(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with ControlPlane(binaries, Path(tmp_path_factory.mktemp("cluster"))) as made:
        made.start_wardle()
        yield made
