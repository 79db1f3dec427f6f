"""Tasks that several wait for, and tasks that nobody waits for.

Work that is asked for again while it is done is done once more. A bug that ends a task nobody waits for is
logged at once, not when the task is collected. One run per key: ``specmux_cache.reading.flight``.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Final, TypeVar

LONGEST_REST: Final = 0.5
"""Seconds."""

V = TypeVar("V")

TURN: Final = 0.002
"""Seconds of work on the event loop, after which it is somebody else's turn."""


async def in_turns(steps: Generator[None, None, V]) -> V:
    """What comes of ``steps``, a few milliseconds at a time, between which everybody else has a turn."""
    while True:
        until = time.perf_counter() + TURN
        while time.perf_counter() < until:
            try:
                next(steps)
            except StopIteration as end:
                result: V = end.value
                return result
        await asyncio.sleep(0)


class Coalescer:
    """Does the same work soon after it was asked for, once for all who asked meanwhile; never twice at a
    time."""

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
        """``gather``: seconds between the first who asks and the run. ``pause``: seconds between a run and
        the next; ``rest``: the same, as a multiple of what the run took, for work that is not to take all
        there is. ``failure`` is logged when the work ends with a bug; the next who asks has it done again."""
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
        """It was asked for, and all that was is done."""
        return self._running is not None and self._running.done()

    def ask(self) -> asyncio.Task[None]:
        """Have it done. What is returned ends when nothing is left to be done; shield it."""
        self._is_due = True
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run())
            log_failure(self._running, self._logger, self._failure)
        return self._running

    async def close(self) -> None:
        """Begin nothing more, and return when nothing runs."""
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
    """Have ``message`` logged with the error that ``task`` ends with; a good end and a cancelled one are
    silent."""

    def tell(ended: asyncio.Task[Any]) -> None:
        if not ended.cancelled() and (error := ended.exception()) is not None:
            logger.error(message, exc_info=error)

    task.add_done_callback(tell)


async def finish(logger: logging.Logger, *steps: Callable[[], Awaitable[object] | None] | None) -> None:
    """Run every step of an end in order, whatever fails in those before; each failure is one line of the log.
    None: there is nothing to end. A step that is no coroutine function has ended when it returns."""
    for step in steps:
        if step is None:
            continue
        try:
            ended = step()
            if ended is not None:
                await ended
        except Exception as error:  # noqa: BLE001  # whatever it is, the rest has to end
            name = getattr(getattr(step, "func", step), "__qualname__", step)  # of a partial, too
            logger.error("%s failed, the end goes on: %s: %s", name, type(error).__name__, error)
