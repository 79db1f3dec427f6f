"""A worker process for builds: orjson and cbor2 hold the GIL, so a large document in a thread would block the
event loop.

The process starts on first use or by ``start``, and again after a crash or a timeout. Its memory is then
lost, which costs only time.
"""

# Theory of operation
#
# A worker is forked from a fork server, which has imported what all workers begin with; a fork of the
# service would copy its sockets and threads. Service and worker share one pipe. A thread of the service
# sends a job, pickled, and waits for the answer; the event loop waits for the thread. Jobs are functions
# by name, so the service need not import what they run.
#
# One job runs at a time, and the pipe is never left in the middle of a message: a job that is cancelled,
# takes too long or fails in an unknown way ends its process, and the next job starts another. A job that
# the process had not taken yet is given to the next one; a job at which it died is not.
#
# Time is counted in the process's own processor time, since a busy machine is no fault of the job. A
# process that uses hardly any hangs. Starts that fail pause, each twice as long as the one before.
#
# No worker outlives the service: a thread in it waits for the service's end, and ``end_helpers`` kills
# fork server and resource tracker, which multiprocessing would leave stopped. Signals of a terminal reach
# it too and are ignored: only the service ends it.
#
# A worker without work returns its free memory to the system: what it took for a large document would count
# against the service's limit for good.
#
# What must never happen: an answer taken for another job's; a service that waits for a process that was
# stopped; a process that outlives the service; a worker's memory needed for a right answer.

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import multiprocessing
import os
import signal
import socket
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
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
"""The modules that the fork server imports once. A worker also imports this module, for what it begins with,
and the program's main module, and with it the command line; from the fork server it gets them at once, in
shared memory."""

PAUSE_MIN: Final = 1.0
PAUSE_MAX: Final = 60.0
"""Seconds between two starts that fail, doubled each time. Each costs half a second of processor time."""

START_MAX: Final = 60.0
"""Seconds that a start may take: a fork server that was stopped answers never."""

END_MAX: Final = 3.0
"""Seconds that a process may take to be gone once it was killed; after them the fork server, which tells of
it, is killed as well."""

IDLE: Final = 1.0
"""Seconds without a job after which a worker returns free memory to the system."""

PROGRESS: Final = 0.01
"""Least share of a core that a job uses while it makes progress."""

OUT_OF_MEMORY: Final = (
    "the kernel most likely killed it because memory ran out; raise the memory limit of the container or unit"
    " (docs/sizing.md says what a number of definitions needs)"
)

_FORK_SERVER: Final = (forkserver._forkserver, "_forkserver_pid")  # noqa: SLF001
_RESOURCE_TRACKER: Final = (resource_tracker._resource_tracker, "_pid")  # noqa: SLF001
"""Where the multiprocessing module has the ids of its processes, which it tells nobody."""

_OBJECTS_UNTIL_COLLECTED: Final = 50_000
"""Live containers after which the young generation is searched for cycles."""


@dataclass(frozen=True, slots=True)
class StartPause:
    """Why the process does not start, and until when that is not tried again (the loop's time)."""

    reason: str
    seconds: float
    until: float


@dataclass(frozen=True, slots=True)
class JobException:
    """The name of the exception that a job raised."""

    exception: str


class NotTaken(WorkerFailed):
    """The process was gone before it took the job, which is not to blame."""


class WorkerProcess:
    """A process that does one job at a time, and the thread of the service that talks to it.

    ``concurrent.futures`` is not used: its pool waits for what a process that was stopped never tells, and
    needs semaphores, of which Python's resource tracker complains whenever it was killed.
    """

    def __init__(self) -> None:
        """Starts it; ``started`` says how that went."""
        self.pid = 0
        self.exit_code: int | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="worker")
        self._process: BaseProcess | None = None
        self._is_killed = False
        self._ending: asyncio.Task[None] | None = None
        self._jobs, self._theirs = multiprocessing.Pipe()
        self.started = asyncio.create_task(self._wait_for_start(), name="start of a worker")

    async def ask(self, work: tuple[Any, ...]) -> Any:
        """The answer of the process. Raises NotTaken, and EOFError or OSError if it died."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._ask, work)

    async def end(self) -> None:
        """Kill it, and wait until it is gone. All who call it wait for one end."""
        if self._ending is None:
            self._ending = asyncio.create_task(self._end(), name="end of a worker process")
        await asyncio.shield(self._ending)

    async def _end(self) -> None:
        self._kill()
        try:
            gone = asyncio.get_running_loop().run_in_executor(self._thread, self._join)
        except RuntimeError:
            return  # there was no thread to start it
        finally:
            self._thread.shutdown(wait=False)
        done, _ = await asyncio.wait([gone], timeout=END_MAX)
        if not done:
            _signal(_FORK_SERVER, signal.SIGKILL)
        await asyncio.gather(self.started, gone, return_exceptions=True)

    async def _wait_for_start(self) -> None:
        async with asyncio.timeout(START_MAX):
            await asyncio.get_running_loop().run_in_executor(self._thread, self._start)

    def _start(self) -> None:
        with self._theirs:
            self._process = _launch(self._theirs)
        if self._is_killed:
            self._process.kill()
        found = self._jobs.recv()
        if isinstance(found, BaseException):
            raise found
        self.pid = found

    def _ask(self, work: tuple[Any, ...]) -> Any:
        try:
            self._jobs.send(work)
        except BrokenPipeError as error:
            raise NotTaken("the worker process died") from error
        return self._jobs.recv()

    def _kill(self) -> None:
        """From any thread: whatever the process and its thread are at, neither waits any longer."""
        self._is_killed = True
        if self._process is not None:
            self._process.kill()
        # A stopped fork server forks nothing, and tells of no end; both would outlive the service.
        for helper in (_FORK_SERVER, _RESOURCE_TRACKER):
            _signal(helper, signal.SIGCONT)
        pipe = socket.socket(fileno=self._jobs.fileno())
        with contextlib.suppress(OSError):
            pipe.shutdown(socket.SHUT_RDWR)
        pipe.detach()

    def _join(self) -> None:
        self._jobs.close()
        if self._process is not None:
            self._process.join()
            self.exit_code = self._process.exitcode
            self._process.close()


class Worker:
    """Runs job functions one at a time in a process that keeps a ``BuildMemo``."""

    def __init__(self, *, timeout: float) -> None:
        self._timeout = timeout
        self._process: WorkerProcess | None = None
        self._ending: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Lock()
        self._pause: StartPause | None = None
        """None: the last start worked. Each change is logged."""

    @property
    def is_up(self) -> bool:
        """Whether it has been started and has not ended."""
        return self._process is not None

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
            try:
                reply = await self._reply(call, function, args, kwargs)
            except NotTaken:
                reply = await self._reply(call, function, args, kwargs)
        if isinstance(reply, JobException):
            raise WorkerFailed(f"the build failed with {reply.exception}")
        result: R = reply
        return result

    async def _reply(self, *work: Any) -> Any:
        process = await self._take_process()
        try:
            return await self._within_limit(process, work)
        except TimeoutError:
            self.end()
            raise TookTooLong(self._timeout) from None
        except (EOFError, OSError) as error:
            raise WorkerFailed(await self._death(process)) from error
        except (asyncio.CancelledError, NotTaken):
            self.end()
            raise
        except Exception as error:
            # The pipe may be left in the middle of a message.
            self.end()
            raise WorkerFailed(f"the build failed with {type(error).__name__}") from error

    async def _within_limit(self, process: WorkerProcess, work: tuple[Any, ...]) -> Any:
        """The answer of the process, within ``timeout`` seconds of processor time: on a busy machine, or with
        a fifth of a core, that takes longer by the clock. A process that hardly used any by then hangs.
        Raises TimeoutError."""
        began = used = await asyncio.to_thread(_processor_seconds, process.pid)
        answer = asyncio.ensure_future(process.ask(work))
        try:
            while True:
                # Not wait_for: on Python 3.11 it loses a cancellation that arrives with the result.
                done, _ = await asyncio.wait([answer], timeout=self._timeout)
                if done:
                    return answer.result()
                before, used = used, await asyncio.to_thread(_processor_seconds, process.pid)
                if used - before < PROGRESS * self._timeout or used - began >= self._timeout:
                    raise TimeoutError
        finally:
            answer.cancel()

    async def _death(self, process: WorkerProcess) -> str:
        """Why the process ended by itself, once it is gone; logged if it was killed."""
        if self._process is process:
            self._process = None
        await process.end()
        if process.exit_code != -signal.SIGKILL:
            return "the worker process died"
        logger.warning("a worker process died of signal 9: %s", OUT_OF_MEMORY)
        return f"the worker process died of signal 9: {OUT_OF_MEMORY}"

    def end(self) -> None:
        """Kill the process, losing its memory; the next call starts another."""
        process, self._process = self._process, None
        if process is not None:
            ending = asyncio.create_task(process.end(), name="end of a worker")
            self._ending.add(ending)
            ending.add_done_callback(self._ending.discard)

    def end_idle(self) -> None:
        """``end``, unless it is working, to release its memory."""
        if not self._turn.locked():
            self.end()

    async def close(self) -> None:
        """``end``, and wait until it is gone."""
        self.end()
        await asyncio.gather(*self._ending)

    async def _take_process(self) -> WorkerProcess:
        """The process, started if need be. Raises NoWorker."""
        now = asyncio.get_running_loop().time()
        if self._pause is not None and now < self._pause.until:
            raise _no_worker(self._pause)
        try:
            try:
                process = await self._start_process()
            except EOFError:
                # The fork server died while it started.
                process = await self._start_process()
        except (OSError, EOFError, RuntimeError, MemoryError) as error:
            raise _no_worker(self._pause_starts(error)) from error
        if self._pause is not None:
            self._pause = None
            logger.info("the worker process starts again")
        return process

    async def _start_process(self) -> WorkerProcess:
        if self._process is None:
            self._process = WorkerProcess()
        process = self._process
        try:
            await asyncio.shield(process.started)
        except Exception:
            self.end()
            raise
        return process

    def _pause_starts(self, error: Exception) -> StartPause:
        last = self._pause
        died = isinstance(error, EOFError)
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


def _launch(jobs: Connection) -> BaseProcess:
    """A process that works off ``jobs``. Blocks about a second while the fork server imports this package."""
    try:
        Path.cwd()
    except FileNotFoundError:
        # children start in the parent's directory, which may vanish; no relative paths are used
        os.chdir("/")
    # Nothing is tracked, so that a tracker that died is missed by nobody.
    warnings.filterwarnings("ignore", "resource_tracker: process died")
    # A fork of this process would copy its sockets and threads; the fork server has none.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(PRELOADED)
    process = context.Process(target=_work, args=(jobs,), name="worker")
    process.start()
    return process


def _pid(helper: tuple[object, str]) -> int:
    owner, attribute = helper
    pid: int | None = getattr(owner, attribute, None)
    return pid or 0


def _signal(helper: tuple[object, str], number: int) -> None:
    if pid := _pid(helper):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def end_helpers() -> None:
    """Kill the processes of the multiprocessing module, once every worker has ended: one that was stopped
    would outlive this process. Blocks until they are gone."""
    until = time.monotonic() + END_MAX
    for helper in (_FORK_SERVER, _RESOURCE_TRACKER):
        _signal(helper, signal.SIGKILL)
        pid = _pid(helper)
        with contextlib.suppress(ChildProcessError):
            # Only looked at: the module waits for it itself.
            while pid and not os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
                if time.monotonic() > until:
                    break
                with contextlib.suppress(OSError):  # a clock that was set back
                    time.sleep(0.001)


def _work(jobs: Connection) -> None:
    """The worker: do what comes, until the service closes its end or is gone."""
    with contextlib.suppress(EOFError, OSError):
        try:
            # First: the worker of a service that is killed before the first job would wait forever.
            threading.Thread(target=_end_with_service, daemon=True).start()
            begun: int | Exception = _begin()
        except Exception as error:  # noqa: BLE001  # the service says it
            begun = error
        jobs.send(begun)
        while not isinstance(begun, Exception):
            jobs.send_bytes(_reply_to(jobs.recv_bytes()))
            if not jobs.poll(IDLE):
                return_to_system()


def _reply_to(work: bytes) -> bytes:
    try:
        call, function, args, kwargs = ForkingPickler.loads(work)
        return bytes(ForkingPickler.dumps(call(function, args, kwargs)))
    except Exception as error:  # noqa: BLE001  # of one job
        return bytes(ForkingPickler.dumps(JobException(type(error).__name__)))


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


def _end_with_service() -> None:
    """A killed service closes nothing, and the worker would wait for its next task forever."""
    service = multiprocessing.parent_process()
    if service is not None:
        service.join()
        os._exit(1)


def return_to_system() -> None:
    """Make the C library return free pages inside its heap, which it keeps otherwise and the kernel counts as
    used."""
    import ctypes

    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # present in glibc, absent in musl
    if trim is not None:
        trim(0)


@cache
def _memo() -> BuildMemo:
    """The memo of this worker process; never called in the service's own process."""
    from specmux_aggregator.workers.documents import BuildMemo

    return BuildMemo()


def _with_memo(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return function(_memo(), *args, **kwargs)


def _without_memo(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return function(*args, **kwargs)
