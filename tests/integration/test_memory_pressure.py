"""The whole process under a memory limit: it mounts a made-up cgroup, and the test plays the kernel."""

from __future__ import annotations

import re
from pathlib import Path

import orjson
import pytest

from running.namespaces import require_own_mounts
from running.process import Process, specmux, write_documents

LIMIT = 1 << 30
BIND = 'mount --bind "$0" /sys/fs/cgroup && exec "$@"'


def document(size: int) -> bytes:
    schema = {"type": "object", "description": "x" * size}
    body = {
        "openapi": "3.0.0",
        "info": {"title": "t", "version": "v1"},
        "paths": {},
        "components": {"schemas": {"Thing": schema}},
    }
    return orjson.dumps(body)


@pytest.fixture
def cgroup(tmp_path: Path) -> Path:
    folder = tmp_path / "cgroup"
    folder.mkdir()
    (folder / "memory.max").write_text(f"{LIMIT}\n")
    (folder / "memory.stat").write_text("anon 0\ninactive_file 1048576\n")
    use(folder, 0.5)
    return folder


def use(cgroup: Path, share: float) -> None:
    new = cgroup / "new"
    new.write_text(f"{int(LIMIT * share) + 1048576}\n")
    new.rename(cgroup / "memory.current")


def metric(process: Process, name: str) -> float:
    found = re.search(rf"^{name} (\S+)$", process.get("/metrics")[2].decode(), re.MULTILINE)
    assert found, name
    return float(found[1])


def test_documents_go_under_pressure_and_are_served_all_the_same(tmp_path: Path, cgroup: Path) -> None:
    under = (*require_own_mounts(), "sh", "-c", BIND, str(cgroup))
    keys = [f"apis/g{number}.example/v1" for number in range(6)]
    folder = write_documents(tmp_path / "documents", {key: document(300_000) for key in keys})
    arguments = ("--directory", str(folder), "--listen-port", "0", "--memory-shed-percent", "80")
    with specmux("serve", *arguments, under=under) as process:
        process.until_ready()
        urls = process.paths()
        assert urls.keys() == set(keys)
        bodies = {key: process.get(url)[2] for key, url in urls.items()}
        before = metric(process, "specmux_documents_bytes")
        assert before > metric(process, "specmux_documents_pinned_bytes")
        process.until(lambda: metric(process, "specmux_memory_used_ratio") == 0.5, "the limit is seen")
        assert metric(process, "specmux_documents_shed_total") == 0

        use(cgroup, 0.9)
        process.until(
            lambda: (
                metric(process, "specmux_documents_bytes")
                == metric(process, "specmux_documents_pinned_bytes")
            ),
            "only what is pinned is left",
        )
        assert metric(process, "specmux_memory_pressure") == 1
        assert metric(process, "specmux_documents_shed_total") >= len(keys)
        for key, url in urls.items():
            status, _, body = process.get(url)
            assert (status, body) == (200, bodies[key])

        use(cgroup, 0.5)
        process.until(lambda: metric(process, "specmux_memory_pressure") == 0, "the pressure is over")
        assert process.stop() == 0
    told = [line for line in process.lines if "of 1024 MiB of memory" in line]
    assert len(told) == 2, process.output
