"""How much of its memory the process uses, and the letting go of documents before the kernel ends it.

What counts is what would get the process killed: the limit of its cgroup or of one above it, against what
cannot be dropped there; without such a limit the resident set against the machine's memory. A document that
is let go costs its next reader a millisecond or a download; a process that is killed costs every reader
everything.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from specmux_aggregator.tasks import log_failure

logger = logging.getLogger(__name__)

INTERVAL: Final = 1.0
"""Seconds between looks."""

CALM: Final = 0.05
"""How far below the mark the share must fall before the pressure is over: at the mark itself it would come
and go with every request."""

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


@dataclass(frozen=True, slots=True)
class MemoryState:
    """What the last look found, for metrics."""

    share: float | None
    """Of the memory that the process may have; None: not known."""
    is_pressed: bool


class MemoryWatch:
    """Looks once per second. Lives in one event loop; ``shed`` is called there, the kernel is asked in a
    thread."""

    def __init__(
        self,
        *,
        percent: int,
        shed: Callable[[], int],
        usage: Callable[[], MemoryUsage | None] = memory_usage,
        interval: float = INTERVAL,
    ) -> None:
        """``percent``: of the limit, from which on ``shed`` is called with every look; it says how many
        forms it let go. 0: never, and nobody looks."""
        self._mark = percent / 100
        self._shed = shed
        self._usage = usage
        self._interval = interval
        self._task: asyncio.Task[None] | None = None
        self.state = MemoryState(share=None, is_pressed=False)

    def start(self) -> None:
        if self._mark:
            self._task = asyncio.create_task(self._run())
            log_failure(self._task, logger, "memory is no longer watched")

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        while True:
            await self._look()
            await asyncio.sleep(self._interval)

    async def _look(self) -> None:
        usage = await asyncio.to_thread(self._usage)
        if usage is None:
            return
        was_pressed = self.state.is_pressed
        is_pressed = usage.share >= (self._mark - CALM if was_pressed else self._mark)
        self.state = MemoryState(usage.share, is_pressed)
        if is_pressed and not was_pressed:
            logger.warning(
                "%.0f %% of %d MiB of memory are in use: letting go of documents",
                usage.share * 100,
                usage.limit >> 20,
            )
        elif was_pressed and not is_pressed:
            logger.info("%.0f %% of %d MiB of memory are in use again", usage.share * 100, usage.limit >> 20)
        if usage.share >= self._mark and self._shed():
            await asyncio.to_thread(return_to_system)


def return_to_system() -> None:
    """Have the C library give back the pages that are free in the midst of its heap; it keeps them
    otherwise, and the kernel goes on counting them as ours."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it, musl does not
    if trim is not None:
        trim(0)
