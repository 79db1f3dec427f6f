"""Memory usage of the process, and release of documents before the kernel kills it.

The relevant figure is what gets the process killed: the limit of its cgroup or a parent, against memory that
cannot be reclaimed; without such a limit, the resident set against the machine's memory. Fetching a released
document again costs its next reader a millisecond or a download; a killed process costs every reader
everything.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from specmux_aggregator.tasks import log_failure
from specmux_aggregator.workers.worker import return_to_system

logger = logging.getLogger(__name__)

INTERVAL: Final = 1.0
"""Seconds between checks."""

CALM: Final = 0.05
"""How far below the threshold the share must fall before the pressure ends; at the threshold itself it would
alternate with every request."""

PROC: Final = Path("/proc")
CGROUPS: Final = Path("/sys/fs/cgroup")


@dataclass(frozen=True, slots=True)
class MemoryUsage:
    """Bytes in use, and the limit at which the kernel has no more."""

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
    """The field of ``memory.stat`` with the page cache, which the kernel reclaims before it kills."""


V2: Final = Accounts("memory.current", "memory.max", "inactive_file")
V1: Final = Accounts("memory.usage_in_bytes", "memory.limit_in_bytes", "total_inactive_file")


def memory_usage(*, proc: Path = PROC, cgroups: Path = CGROUPS) -> MemoryUsage | None:
    """The usage under the tightest limit; None if the system does not report it (not Linux)."""
    try:
        total = _field(proc / "meminfo", "MemTotal:") * 1024
        resident = int((proc / "self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None
    # Version 1 expresses "no limit" by a number beyond any memory. A limit above this machine's memory is
    # none either.
    limited = (item for item in _accounts(proc, cgroups) if item.limit < total)
    return max(limited, key=lambda item: item.share, default=MemoryUsage(resident, total))


def _accounts(proc: Path, cgroups: Path) -> Iterator[MemoryUsage]:
    """The cgroup of the process and its parents, if visible and limited."""
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
    """The folders from the cgroup up to the mounted root. In a container the path may be the host's, of which
    only the root is visible."""
    parts = PurePosixPath(path.lstrip("/")).parts
    if ".." not in parts:
        for depth in range(len(parts), 0, -1):
            yield root.joinpath(*parts[:depth])
    yield root


def _read(folder: Path, files: Accounts) -> MemoryUsage | None:
    """None if the cgroup does not exist or has no limit."""
    try:
        limit = int((folder / files.limit).read_text())
        used = int((folder / files.used).read_text())
        droppable = _field(folder / "memory.stat", files.droppable)
    except (OSError, ValueError):  # "max" is not a number
        return None
    return MemoryUsage(max(0, used - droppable), limit) if limit > 0 else None


def _field(path: Path, name: str) -> int:
    """The number after ``name`` at the start of a line. Raises ValueError if absent."""
    for line in path.read_text().splitlines():
        words = line.split()
        if words[:1] == [name]:
            return int(words[1])
    raise ValueError(f"{path.name} has no {name}")


@dataclass(frozen=True, slots=True)
class MemoryState:
    """The result of the last check, for metrics."""

    share: float | None
    """Share of the available memory in use; None: unknown."""
    is_pressed: bool


class MemoryWatch:
    """Checks once per second. Lives on one event loop, where ``shed`` is called; the kernel is asked in a
    thread."""

    def __init__(
        self,
        *,
        percent: int,
        shed: Callable[[], int],
        usage: Callable[[], MemoryUsage | None] = memory_usage,
        interval: float = INTERVAL,
    ) -> None:
        """``percent``: share of the limit from which ``shed`` is called at every check; it returns the number
        of released forms. 0: never check."""
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
