"""The process from the event loop's side: one job at a time, limits, and its end.

It starts with the first job and ends when nobody asked for a while. Whatever goes wrong in it ends it: what
comes next finds an empty one.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Concatenate, Final, ParamSpec, TypeVar

from specmux_aggregator.errors import SpecmuxError, WorkerFailed
from specmux_aggregator.jobs.worker import Worker
from specmux_aggregator.questions.state import ReaderState, perform

logger = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")

MOST_IN_FLIGHT: Final = 16
REQUEST_SECONDS: Final = 5.0
"""For waiting and work together."""
IDLE_SECONDS: Final = 15 * 60.0
MEMORY_BYTES: Final = 256 * 1024 * 1024


class ReaderBusy(SpecmuxError):
    """As many jobs as are allowed wait already."""


class ReaderFailed(SpecmuxError):
    """The job did not end: the process died, took too long or too much memory."""


class Reader:
    """``counted`` is told how each job ended: ok, busy, failed, timeout."""

    def __init__(
        self,
        *,
        counted: Callable[[str], None] = lambda result: None,
        memory_bytes: int = MEMORY_BYTES,
        most_in_flight: int = MOST_IN_FLIGHT,
        request_seconds: float = REQUEST_SECONDS,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._worker = Worker(timeout=2 * request_seconds)
        self._counted = counted
        self._memory_bytes = memory_bytes
        self._most_in_flight = most_in_flight
        self._request_seconds = request_seconds
        self._idle_seconds = idle_seconds
        self._in_flight = 0
        self._turn = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None
        self._starting: asyncio.Task[None] | None = None

    async def ask(
        self, job: Callable[Concatenate[ReaderState, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """The result of ``job(state, *args, **kwargs)``. Raises ReaderBusy, ReaderFailed."""
        if self._in_flight >= self._most_in_flight:
            self._counted("busy")
            raise ReaderBusy("too many requests wait for the reader")
        self._in_flight += 1
        try:
            async with asyncio.timeout(self._request_seconds), self._turn:
                await self._started()
                found: R = await self._worker.run(perform, self._memory_bytes, job, args, kwargs)
        except TimeoutError:
            # A job that was under way was cancelled, and its process killed.
            self._counted("timeout")
            raise ReaderFailed("the reader took too long") from None
        except WorkerFailed as error:
            self._end()
            self._counted("failed")
            logger.warning("the reader was ended: %s", error)
            raise ReaderFailed(f"the reader failed: {error}") from error
        finally:
            self._in_flight -= 1
            self._end_later()
        self._counted("ok")
        return found

    async def close(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._starting = None
        await self._worker.close()

    async def _started(self) -> None:
        """The process is up, or its start has failed. Who waits no longer does not end it."""
        if self._starting is None or (self._starting.done() and not self._worker.is_up):
            self._starting = asyncio.create_task(self._worker.start(), name="reader start")
        await asyncio.shield(self._starting)

    def _end(self) -> None:
        self._starting = None
        self._worker.end()

    def _end_later(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        with contextlib.suppress(RuntimeError):
            self._idle = asyncio.get_running_loop().call_later(self._idle_seconds, self._end)
