"""How much of the memory it may have the process uses, as the kernel says it.

What counts is what would get the process killed: the limit of its cgroup or of one above it, against what
cannot be dropped there. Without such a limit it is the resident set against the machine's memory.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

PROC: Final = Path("/proc")
CGROUPS: Final = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class MemoryUsage:
    """Bytes used, and bytes at which the kernel has no more to give."""

    used: int
    limit: int

    @property
    def share(self) -> float:
        return self.used / self.limit


@dataclass(frozen=True, slots=True)
class Accounts:
    """The files of one version of cgroups."""

    used: str
    limit: str
    droppable: str
    """The field of ``memory.stat`` with the page cache that the kernel takes back before it kills."""


V2: Final = Accounts("memory.current", "memory.max", "inactive_file")
V1: Final = Accounts("memory.usage_in_bytes", "memory.limit_in_bytes", "total_inactive_file")


def memory_usage(*, proc: Path = PROC, cgroups: Path = CGROUPS) -> MemoryUsage | None:
    """The tightest of the limits in force; None where the kernel tells nothing (no Linux)."""
    try:
        total = _field(proc / "meminfo", "MemTotal:") * 1024
        resident = int((proc / "self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None
    # Version 1 says "no limit" with a number beyond any memory. A limit beyond this machine's is none, too.
    limited = (item for item in _accounts(proc, cgroups) if item.limit < total)
    return max(limited, key=lambda item: item.share, default=MemoryUsage(resident, total))


def _accounts(proc: Path, cgroups: Path) -> Iterator[MemoryUsage]:
    """The process's cgroup and those above it, as far as they are to be seen and have a limit."""
    try:
        lines = (proc / "self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            root, files = cgroups, V2
        elif "memory" in controllers.split(","):
            root, files = cgroups / "memory", V1
        else:
            continue
        for folder in _folders(root, path):
            usage = _read(folder, files)
            if usage is not None:
                yield usage


def _folders(root: Path, path: str) -> Iterator[Path]:
    """From the cgroup up to the root that is mounted. In a container the path may be the host's, of which
    nothing is to be seen but the root."""
    parts = PurePosixPath(path.lstrip("/")).parts
    if ".." not in parts:
        for depth in range(len(parts), 0, -1):
            yield root.joinpath(*parts[:depth])
    yield root


def _read(folder: Path, files: Accounts) -> MemoryUsage | None:
    """None where there is no such cgroup, or it has no limit."""
    try:
        limit = int((folder / files.limit).read_text())
        used = int((folder / files.used).read_text())
        droppable = _field(folder / "memory.stat", files.droppable)
    except (OSError, ValueError):  # "max" is no number
        return None
    return MemoryUsage(max(0, used - droppable), limit) if limit > 0 else None


def _field(path: Path, name: str) -> int:
    """The number after ``name`` at the start of a line. Raises ValueError where there is none."""
    for line in path.read_text().splitlines():
        words = line.split()
        if words[:1] == [name]:
            return int(words[1])
    raise ValueError(f"{path.name} has no {name}")
