"""What the kernel's files say, in the shapes in which containers and hosts show them."""

from __future__ import annotations

from pathlib import Path

import pytest

from specmux_aggregator.documents.memory_pressure import MemoryUsage, memory_usage

GIB = 1024**3
MIB = 1024**2
NO_LIMIT_V1 = "9223372036854771712"


class Machine:
    """A made-up /proc and /sys/fs/cgroup with 8 GiB of memory."""

    def __init__(self, folder: Path, *, cgroup: str) -> None:
        self.proc, self.cgroups = folder / "proc", folder / "cgroup"
        self.write(self.proc / "meminfo", f"MemTotal:       {8 * 1024 * 1024} kB\nMemFree: 1 kB\n")
        self.write(self.proc / "self/statm", "9999 256 80 1 0 99 0\n")
        self.write(self.proc / "self/cgroup", cgroup)

    @staticmethod
    def write(path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def v2(self, path: str, *, limit: str, used: int, inactive: int = 0) -> None:
        folder = self.cgroups / path
        self.write(folder / "memory.max", f"{limit}\n")
        self.write(folder / "memory.current", f"{used}\n")
        self.write(folder / "memory.stat", f"anon 1\nfile 2\ninactive_file {inactive}\nactive_file 3\n")

    def v1(self, path: str, *, limit: str, used: int, inactive: int = 0) -> None:
        folder = self.cgroups / "memory" / path
        self.write(folder / "memory.limit_in_bytes", f"{limit}\n")
        self.write(folder / "memory.usage_in_bytes", f"{used}\n")
        self.write(folder / "memory.stat", f"cache 5\ninactive_file 7\ntotal_inactive_file {inactive}\n")

    def usage(self) -> MemoryUsage | None:
        return memory_usage(proc=self.proc, cgroups=self.cgroups)


def test_container_of_version_2_without_what_the_kernel_can_drop(tmp_path: Path) -> None:
    machine = Machine(tmp_path, cgroup="0::/\n")
    machine.v2("", limit=str(GIB), used=600 * MIB, inactive=100 * MIB)
    assert machine.usage() == MemoryUsage(500 * MIB, GIB)


def test_slice_above_counts_when_it_is_the_tighter_one(tmp_path: Path) -> None:
    machine = Machine(tmp_path, cgroup="0::/kubepods/pod1/c1\n")
    machine.v2("kubepods", limit=str(4 * GIB), used=GIB)
    machine.v2("kubepods/pod1", limit=str(GIB), used=900 * MIB)
    machine.v2("kubepods/pod1/c1", limit="max", used=800 * MIB)
    assert machine.usage() == MemoryUsage(900 * MIB, GIB)


def test_path_of_the_host_that_the_container_does_not_see(tmp_path: Path) -> None:
    machine = Machine(tmp_path, cgroup="7:cpu,cpuacct:/x\n4:memory:/kubepods/pod1/c1\n0::/\n")
    machine.v1("", limit=str(GIB), used=300 * MIB, inactive=44 * MIB)
    assert machine.usage() == MemoryUsage(256 * MIB, GIB)


def test_path_outside_of_the_namespace_is_not_followed(tmp_path: Path) -> None:
    machine = Machine(tmp_path, cgroup="0::/../../other\n")
    machine.v2("", limit=str(GIB), used=300 * MIB)
    machine.v2("../../other", limit=str(MIB), used=MIB)
    assert machine.usage() == MemoryUsage(300 * MIB, GIB)


def test_process_of_a_nested_group_of_version_1(tmp_path: Path) -> None:
    machine = Machine(tmp_path, cgroup="4:memory:/a/b\n")
    machine.v1("", limit=NO_LIMIT_V1, used=7 * GIB)
    machine.v1("a", limit=str(2 * GIB), used=GIB)
    machine.v1("a/b", limit=NO_LIMIT_V1, used=GIB)
    assert machine.usage() == MemoryUsage(GIB, 2 * GIB)


@pytest.mark.parametrize("limit", ["max", str(9 * GIB), "0"])
def test_resident_set_counts_when_no_limit_binds(limit: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path, cgroup="0::/\n4:memory:/\n")
    machine.v2("", limit=limit, used=7 * GIB)
    machine.v1("", limit=NO_LIMIT_V1, used=7 * GIB)
    usage = machine.usage()
    assert usage is not None
    assert usage.limit == 8 * GIB
    assert usage.used in (256 * 4096, 256 * 16384, 256 * 65536)


@pytest.mark.parametrize("lost", ["memory.current", "memory.stat", "memory.max"])
def test_group_that_goes_while_it_is_read_is_passed_over(lost: str, tmp_path: Path) -> None:
    machine = Machine(tmp_path, cgroup="0::/a\n")
    machine.v2("", limit=str(GIB), used=300 * MIB)
    machine.v2("a", limit=str(MIB), used=MIB)
    (machine.cgroups / "a" / lost).unlink()
    assert machine.usage() == MemoryUsage(300 * MIB, GIB)


def test_nothing_is_known_without_proc(tmp_path: Path) -> None:
    assert memory_usage(proc=tmp_path, cgroups=tmp_path) is None


def test_this_machine_says_something_sensible() -> None:
    usage = memory_usage()
    if usage is None:
        pytest.skip("this system has no /proc")
    assert usage.used > 0
    assert 0 < usage.share < 1
