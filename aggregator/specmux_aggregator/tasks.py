"""Shared tasks and background tasks, and threads on a system that may refuse them.

Work requested again while it runs is repeated once. An exception that ends a background task is logged at
once, not when the task is garbage-collected. One run per key: ``specmux_cache.reading.single_flight``.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final

from specmux_aggregator.errors import NoThreads

LONGEST_REST: Final = 0.5
"""Seconds."""


class Coalescer:
    """Runs the same work soon after it was requested, once for all requests; runs never overlap."""

    def __init__(
        self,
        work: Callable[[], Awaitable[None]],
        *,
        logger: logging.Logger,
        failure: str,
        gather: float = 0.0,
        pause: float = 0.0,
        rest: float = 0.0,
    ) -> None:
        """``gather``: seconds between the first request and the run. ``pause``: seconds between two runs;
        ``rest``: the same as a multiple of the last run's duration, which bounds the share of time.
        ``failure`` is logged if the work raises; the next request runs it again."""
        self._work = work
        self._logger = logger
        self._failure = failure
        self._gather = gather
        self._pause = pause
        self._rest = rest
        self._not_before = 0.0
        """Monotonic seconds."""
        self._is_due = False
        self._is_closed = False
        self._running: asyncio.Task[None] | None = None

    @property
    def is_settled(self) -> bool:
        """Whether it has run, and nothing is pending."""
        return self._running is not None and self._running.done()

    def ask(self) -> asyncio.Task[None]:
        """Request a run. The returned task ends when nothing is pending; shield it."""
        self._is_due = True
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run())
            log_failure(self._running, self._logger, self._failure)
        return self._running

    async def close(self) -> None:
        """Start nothing more; return when nothing runs."""
        self._is_closed = True
        if self._running is not None:
            await asyncio.gather(self._running, return_exceptions=True)

    async def _run(self) -> None:
        while self._is_due:
            await asyncio.sleep(max(self._gather, self._not_before - time.monotonic()))
            self._is_due = False
            if self._is_closed:
                return
            started = time.monotonic()
            await self._work()
            ended = time.monotonic()
            self._not_before = ended + max(self._pause, min(LONGEST_REST, self._rest * (ended - started)))


def log_failure(task: asyncio.Task[Any], logger: logging.Logger, message: str) -> None:
    """Log ``message`` with the exception that ends ``task``; success and cancellation are silent."""

    def tell(ended: asyncio.Task[Any]) -> None:
        if not ended.cancelled() and (error := ended.exception()) is not None:
            logger.error(message, exc_info=error)

    task.add_done_callback(tell)


async def finish(logger: logging.Logger, *steps: Callable[[], Awaitable[object] | None] | None) -> None:
    """Run every step of a shutdown in order, whichever fail; each failure is one log line. None is skipped. A
    step that is not a coroutine function is complete when it returns."""
    for step in steps:
        if step is None:
            continue
        try:
            ended = step()
            if ended is not None:
                await ended
        except Exception as error:  # noqa: BLE001  # whatever it is, the rest has to end
            name = getattr(getattr(step, "func", step), "__qualname__", step)  # also for a partial
            logger.error("%s failed, the end goes on: %s: %s", name, type(error).__name__, error)


class FewThreads(ThreadPoolExecutor):
    """A pool of which one thread is started at once: where the system refuses more, work waits for those
    that there are."""

    def __init__(self, most: int, name: str) -> None:
        """Raises NoThreads."""
        super().__init__(most, thread_name_prefix=name)
        try:
            self.submit(int).result()
        except (RuntimeError, MemoryError) as error:
            raise NoThreads(
                f"no thread can be started ({error}): the limit of processes, threads or memory is reached; "
                "raise it (ulimit -u, ulimit -v, TasksMax of the unit, the pids limit of the container)"
            ) from error

    def _adjust_thread_count(self) -> None:
        try:
            super()._adjust_thread_count()
        except (RuntimeError, MemoryError):
            if not self._threads:
                raise
