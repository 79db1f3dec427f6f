"""Lets go of documents before the kernel ends the process for its memory.

A document that is let go costs its next reader a millisecond or a download; a process that is killed costs
every reader everything.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from specmux_aggregator.memory_usage import MemoryUsage, memory_usage
from specmux_aggregator.task_ends import log_failure

logger = logging.getLogger(__name__)

INTERVAL: Final = 1.0
"""Seconds between looks."""

CALM: Final = 0.05
"""How far below the mark the share must fall before the pressure is over: at the mark itself it would come
and go with every request."""


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
