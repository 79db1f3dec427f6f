"""The reader process as seen from the event loop: one job at a time, with limits.

It starts with the first job and ends after a period without jobs. An exception affects only its job. A crash,
or a violation of the time or memory limit, ends the process; the next job starts a new, empty one. A client
that stops waiting cancels nothing: running jobs and loaded documents serve the next client.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Any, Concatenate, Final, ParamSpec, TypeVar, cast

from specmux_aggregator.errors import NoWorker, SpecmuxError, WorkerFailed
from specmux_aggregator.mounts import READER, NamedFunction
from specmux_aggregator.reader.requests import JobFault, State
from specmux_aggregator.workers.worker import Worker

logger = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")

_PERFORM: Final[NamedFunction[..., Any]] = NamedFunction(READER["perform"])

MOST_IN_FLIGHT: Final = 16
REQUEST_SECONDS: Final = 5.0
"""Seconds that a client waits."""
JOB_CPU_SECONDS: Final = 10.0
"""Processor time in seconds; jobs that read what clients send have shorter limits of their own."""
JOB_SECONDS: Final = 60.0
"""Wall-clock seconds: generous, so that JOB_CPU_SECONDS is reached first even on a machine with less than one
free processor."""
IDLE_SECONDS: Final = 15 * 60.0
MEMORY_BYTES: Final = 256 * 1024 * 1024


class ReaderBusy(SpecmuxError):
    """The limit on waiting jobs is reached."""


class ReaderFailed(SpecmuxError):
    """The job did not end in time, or the process crashed or exceeded its memory limit."""


class ReaderFault(SpecmuxError):
    """The job raised an exception; the process continues."""


class Unready(Exception):
    """The answer cannot be had now."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class Reader:
    """``counted`` is called with the result of each job: ok, busy, failed, timeout."""

    def __init__(
        self,
        *,
        counted: Callable[[str], None] = lambda result: None,
        memory_bytes: int = MEMORY_BYTES,
        most_in_flight: int = MOST_IN_FLIGHT,
        request_seconds: float = REQUEST_SECONDS,
        job_cpu_seconds: float = JOB_CPU_SECONDS,
        job_seconds: float = JOB_SECONDS,
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        self._worker = Worker(timeout=job_seconds)
        self._counted = counted
        self._memory_bytes = memory_bytes
        self._most_in_flight = most_in_flight
        self._request_seconds = request_seconds
        self._job_cpu_seconds = job_cpu_seconds
        self._idle_seconds = idle_seconds
        self._asked: set[asyncio.Task[Any]] = set()
        """Jobs that wait or run."""
        self._working: asyncio.Task[Any] | None = None
        self._turn = asyncio.Lock()
        self._idle: asyncio.TimerHandle | None = None
        self._starting: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Have the process up before there is a job for it."""
        await self._start_process()

    async def ask(self, job: Callable[Concatenate[State, P], R], *args: P.args, **kwargs: P.kwargs) -> R:
        """The result of ``job(state, *args, **kwargs)``. Raises ReaderBusy, ReaderFailed, ReaderFault."""
        if len(self._asked) >= self._most_in_flight:
            self._counted("busy")
            raise ReaderBusy("too many requests wait for the reader")
        task = asyncio.create_task(self._run(job, args, kwargs), name="reader job")
        self._asked.add(task)
        task.add_done_callback(self._done)
        try:
            async with asyncio.timeout(self._request_seconds):
                found = await asyncio.shield(task)
        except TimeoutError:
            self._counted("timeout")
            raise ReaderFailed("the reader took too long") from None
        except WorkerFailed as error:
            self._counted("failed")
            raise ReaderFailed(f"the reader failed: {error}") from error
        finally:
            if self._working is not task:
                task.cancel()
        if isinstance(found, JobFault):
            self._counted("failed")
            logger.error("a job of the reader failed with %s at %s", found.exception, found.place)
            raise ReaderFault(f"a fault of specmux: {found.exception} at {found.place}")
        self._counted("ok")
        return cast("R", found)

    async def _run(self, job: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the job in its turn, to its end, even if its client has stopped waiting. Raises
        WorkerFailed."""
        async with self._turn:
            self._working = asyncio.current_task()
            try:
                await self._start_process()
                limits = self._memory_bytes, self._job_cpu_seconds
                return await self._worker.run(_PERFORM, *limits, job, args, kwargs)
            except WorkerFailed as error:
                self._end()
                if not isinstance(error, NoWorker):
                    logger.warning("the reader was ended: %s", error)
                raise
            finally:
                self._working = None
                self._end_later()

    def _done(self, task: asyncio.Task[Any]) -> None:
        self._asked.discard(task)
        if not task.cancelled():
            task.exception()  # marks the exception as retrieved, even if nothing awaits it

    async def close(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        # A start that goes on would begin another process once this one is gone.
        tasks = self._asked | ({self._starting} if self._starting is not None else set())
        self._starting = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._worker.close()

    async def _start_process(self) -> None:
        """Wait until the process has started or failed to. Cancelling the wait does not end the process."""
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
