"""A worker process for builds: orjson and cbor2 hold the GIL, so a large document in a thread would block the
event loop.

The process starts on first use or by ``start``, and again after a crash or a timeout. Its memory is then
lost, which costs only time.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cache
from multiprocessing.context import ForkServerContext
from multiprocessing.process import BaseProcess
from multiprocessing.queues import SimpleQueue
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

from specmux_aggregator.errors import NoWorker, TookTooLong, WorkerFailed

if TYPE_CHECKING:  # imported in the worker process alone
    from specmux_aggregator.workers.documents import BuildMemo

logger = logging.getLogger(__name__)

P = ParamSpec("P")
R = TypeVar("R")

PRELOADED: Final = [
    "specmux_aggregator.workers.worker",
    "specmux_aggregator.workers.documents",
    "specmux_aggregator.cli",
]
"""What the fork server imports once. A worker also imports this module, for what it begins with, and the
program's main module, and with it the command line; from the fork server it gets them at once, in shared
memory."""

PAUSE_MIN: Final = 1.0
PAUSE_MAX: Final = 60.0
"""Seconds between two starts that fail, doubled each time. Each costs half a second of processor time."""

START_MAX: Final = 60.0
"""Seconds that a start may take. A pool without memory for its thread starts for ever."""

END_MAX: Final = 3.0
"""Seconds that a pool may take to end once its process was killed."""

PROGRESS: Final = 0.01
"""Least share of a core that a job uses while it makes progress."""

OUT_OF_MEMORY: Final = (
    "the kernel most likely killed it because memory ran out; raise the memory limit of the container or unit"
    " (docs/sizing.md says what a number of definitions needs)"
)

_OBJECTS_UNTIL_COLLECTED: Final = 50_000
"""Live containers after which the young generation is searched for cycles."""


@dataclass(frozen=True, slots=True)
class WorkerProcess:
    """A pool of one process that is never replaced: when the process ends, the pool is broken."""

    pool: ProcessPoolExecutor
    process: BaseProcess
    pid: int
    results: SimpleQueue[Any]


@dataclass(frozen=True, slots=True)
class StartPause:
    """Why the process does not start, and until when that is not tried again (the loop's time)."""

    reason: str
    seconds: float
    until: float


class WorkerContext(ForkServerContext):
    """Starts workers; keeps the process of a pool, and the queue through which it receives results."""

    def __init__(self) -> None:
        super().__init__()
        self.processes: list[BaseProcess] = []
        self.results: list[SimpleQueue[Any]] = []

    def Process(self, *args: Any, **kwargs: Any) -> BaseProcess:  # type: ignore[override]  # noqa: N802
        self.processes.append(super().Process(*args, **kwargs))
        return self.processes[-1]

    def SimpleQueue(self) -> SimpleQueue[Any]:  # noqa: N802  # as multiprocessing names it
        self.results.append(super().SimpleQueue())
        return self.results[-1]


class Worker:
    """Runs job functions one at a time in a process that keeps a ``BuildMemo``."""

    def __init__(self, *, timeout: float) -> None:
        self._timeout = timeout
        self._pool: asyncio.Task[WorkerProcess] | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Lock()
        self._pause: StartPause | None = None
        """None: the last start worked. Each change is logged."""

    @property
    def is_up(self) -> bool:
        """Whether it has been started and has not ended."""
        return self._pool is not None

    async def start(self) -> None:
        """Start the process before there is work. A failure is logged, and raised again to callers with
        work."""
        with contextlib.suppress(WorkerFailed):
            await self.run(os.getpid)

    async def build(
        self, function: Callable[Concatenate[BuildMemo, P], R], *args: P.args, **kwargs: P.kwargs
    ) -> R:
        """The result of ``function(memo, *args, **kwargs)``. Raises WorkerFailed."""
        return await self._run(_with_memo, function, args, kwargs)

    async def run(self, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """The result of ``function(*args, **kwargs)``. Raises WorkerFailed."""
        return await self._run(_without_memo, function, args, kwargs)

    async def _run(
        self,
        call: Callable[..., Any],
        function: Callable[..., R],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> R:
        # One at a time, so that the time limit covers work rather than waiting, and a kill hits only the
        # culprit.
        async with self._turn:
            return await self._done(call, function, args, kwargs)

    async def _done(
        self,
        call: Callable[..., Any],
        function: Callable[..., R],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> R:
        future: asyncio.Future[R] = await self._submitted(call, function, args, kwargs)
        try:
            return await self._within_limit(future)
        except TimeoutError:
            self.end()
            raise TookTooLong(self._timeout) from None
        except BrokenProcessPool as error:
            raise WorkerFailed(await self._death()) from error
        except asyncio.CancelledError:
            self.end()
            raise
        except Exception as error:
            raise WorkerFailed(f"the build failed with {type(error).__name__}") from error

    async def _within_limit(self, future: asyncio.Future[R]) -> R:
        """The result, within ``timeout`` seconds of processor time: on a busy machine, or with a fifth of a
        core, that takes longer by the clock. A process that hardly used any by then hangs. Raises
        TimeoutError."""
        pid = self._pool.result().pid if self._pool is not None else 0
        began = used = _processor_seconds(pid)
        try:
            while True:
                # Not wait_for: on Python 3.11 it loses a cancellation that arrives with the result.
                done, _ = await asyncio.wait([future], timeout=self._timeout)
                if done:
                    return future.result()
                before, used = used, _processor_seconds(pid)
                if used - before < PROGRESS * self._timeout or used - began >= self._timeout:
                    raise TimeoutError
        finally:
            future.cancel()

    async def _death(self) -> str:
        """Why the process ended by itself, once it is gone; logged if it was killed."""
        started, self._pool = self._pool, None
        if started is None:
            return "the worker process died"
        await _end(started, is_dead=True)
        if (await started).process.exitcode != -signal.SIGKILL:
            return "the worker process died"
        logger.warning("a worker process died of signal 9: %s", OUT_OF_MEMORY)
        return f"the worker process died of signal 9: {OUT_OF_MEMORY}"

    def end(self) -> None:
        """Kill the process, losing its memory; the next call starts another. A starting process ends once it
        has started."""
        pool, self._pool = self._pool, None
        if pool is not None:
            ending = asyncio.create_task(_end(pool), name="end of a worker")
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)

    def end_idle(self) -> None:
        """``end``, unless it is working, to release its memory."""
        if not self._turn.locked():
            self.end()

    async def close(self) -> None:
        """``end``, and wait until it is gone: otherwise the interpreter's exit would write to the pool's pipe
        while the pool's thread closes it (_python_exit of concurrent.futures.process)."""
        self.end()
        await asyncio.gather(*self._ending)

    async def _submitted(self, *work: Any) -> asyncio.Future[Any]:
        now = asyncio.get_running_loop().time()
        if self._pause is not None and now < self._pause.until:
            raise _no_worker(self._pause)
        try:
            try:
                return asyncio.wrap_future((await self._started()).pool.submit(*work))
            except (BrokenProcessPool, EOFError):
                # It died while idle, or the fork server died while it started; the next job is not to blame.
                self.end()
                return asyncio.wrap_future((await self._started()).pool.submit(*work))
        except (OSError, EOFError, RuntimeError) as error:
            self.end()
            raise _no_worker(self._paused(error)) from error

    async def _started(self) -> WorkerProcess:
        if self._pool is None:
            self._pool = asyncio.create_task(asyncio.to_thread(_new_process))
        process = await asyncio.shield(self._pool)
        if self._pause is not None:
            self._pause = None
            logger.info("the worker process starts again")
        return process

    def _paused(self, error: Exception) -> StartPause:
        last = self._pause
        died = isinstance(error, (BrokenProcessPool, EOFError))
        reason = (
            "it died at once" if died else getattr(error, "strerror", None) or str(error) or "not in time"
        )
        if last is None:
            logger.error("the worker process does not start, so nothing is converted or encoded: %s", reason)
        seconds = PAUSE_MIN if last is None else min(2 * last.seconds, PAUSE_MAX)
        self._pause = StartPause(reason, seconds, asyncio.get_running_loop().time() + seconds)
        return self._pause


def _processor_seconds(pid: int) -> float:
    """Processor time of a process so far; 0 where the system does not tell (no /proc)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _no_worker(pause: StartPause) -> NoWorker:
    return NoWorker(f"the worker process does not start: {pause.reason}")


def _new_process() -> WorkerProcess:
    """A pool with a running process. Blocks about a second while the fork server imports this package."""
    try:
        Path.cwd()
    except FileNotFoundError:
        # children start in the parent's directory, which may vanish; no relative paths are used
        os.chdir("/")
    # A fork of this process would copy its sockets and threads; the fork server has none.
    context = WorkerContext()
    context.set_forkserver_preload(PRELOADED)
    # The watch comes first: the worker of a service that is killed before the first job would wait forever.
    pool = ProcessPoolExecutor(max_workers=1, mp_context=context, initializer=_watch_service)
    try:
        # Not in the initializer, which would print what it raises and keep the reason to itself.
        pid = pool.submit(_begin).result(START_MAX)
        return WorkerProcess(pool, context.processes[0], pid, context.results[0])
    except BaseException:
        # The interpreter's exit would wait for a process that waits for work.
        for process in context.processes:
            if process.pid is not None:
                process.kill()
        pool.shutdown()
        raise


async def _end(started: asyncio.Task[WorkerProcess], *, is_dead: bool = False) -> None:
    await asyncio.wait([started])
    if started.cancelled() or started.exception() is not None:
        return
    ended = started.result()
    # A pool has no public method to kill its process. The exit status of a dead one can be read only once,
    # which the pool does.
    for process in () if is_dead else multiprocessing.active_children():
        if process.pid == ended.pid:
            process.kill()
    shutdown = asyncio.ensure_future(asyncio.to_thread(ended.pool.shutdown, cancel_futures=True))
    done, _ = await asyncio.wait([shutdown], timeout=END_MAX)
    if not done:
        # If it was killed while writing a result, the pool's thread waits for the rest forever, since this
        # process holds the other end of the pipe as well.
        ended.results.close()
    await shutdown


def _begin() -> int:
    """Initialize a worker: only the service decides when it ends, or the service's own end. Returns the
    process id."""
    # Give the process that answers clients precedence when cores are scarce.
    with contextlib.suppress(OSError):  # a sandbox may refuse it
        os.nice(10)
    # Documents are trees of hundreds of thousands of objects without cycles: searching for cycles every 700
    # objects takes a tenth of a conversion. Imported objects are permanent and excluded.
    gc.freeze()
    gc.set_threshold(_OBJECTS_UNTIL_COLLECTED)
    # Ctrl-C in a terminal reaches every process of the group.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    return os.getpid()


def _watch_service() -> None:
    threading.Thread(target=_end_with_service, daemon=True).start()


def _end_with_service() -> None:
    """A killed service closes nothing, and the worker would wait for its next task forever."""
    service = multiprocessing.parent_process()
    if service is not None:
        service.join()
        os._exit(1)


@cache
def _memo() -> BuildMemo:
    """The memo of this worker process; never called in the service's own process."""
    from specmux_aggregator.workers.documents import BuildMemo

    return BuildMemo()


def _with_memo(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return function(_memo(), *args, **kwargs)


def _without_memo(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return function(*args, **kwargs)
