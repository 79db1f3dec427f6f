"""The worker process: its death, its time limit, callers that leave. Real processes."""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import multiprocessing
import operator
import os
import signal
import struct
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path

import pytest

from deadline import DEADLINE
from specmux_aggregator.errors import NoWorker, WorkerFailed
from specmux_aggregator.reader.process import Reader
from specmux_aggregator.workers import worker as workers
from specmux_aggregator.workers.worker import Worker, WorkerProcess


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def until_gone(pid: int) -> None:
    async with asyncio.timeout(DEADLINE):
        while is_alive(pid):
            await asyncio.sleep(0.01)


def is_alive_in(process: workers.WorkerProcess) -> bool:
    started = process._process
    return started is not None and started in multiprocessing.active_children()


async def until_threads_end() -> None:
    async with asyncio.timeout(DEADLINE):
        while any(each.name.startswith("worker") for each in threading.enumerate()):
            await asyncio.sleep(0.01)


async def test_build_that_crashes_is_worker_failed_and_costs_no_process() -> None:
    worker = Worker(timeout=DEADLINE)
    pid = await worker.run(os.getpid)
    with pytest.raises(WorkerFailed, match="ZeroDivisionError"):
        await worker.run(operator.truediv, 1, 0)
    assert await worker.run(os.getpid) == pid
    await worker.close()


FILL = """
import sys
blocks = [bytes(2048) for _ in range(20_000)]
sys.last_block = blocks.pop()  # at the end of the heap, which keeps all that is free below it
blocks.clear()
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc")
async def test_worker_without_work_returns_what_its_last_job_took() -> None:
    def resident() -> int:
        return int(Path(f"/proc/{pid}/status").read_text().partition("VmRSS:")[2].split()[0]) // 1024

    worker = Worker(timeout=DEADLINE)
    pid = await worker.run(os.getpid)
    before = resident()
    await worker.run(exec, FILL, {})
    async with asyncio.timeout(DEADLINE):
        while resident() > before + 20:
            await asyncio.sleep(0.05)
    await worker.close()


async def test_worker_that_dies_in_a_build_fails_that_build_alone() -> None:
    worker = Worker(timeout=DEADLINE)
    first = asyncio.create_task(worker.run(os._exit, 1))
    waiting = [asyncio.create_task(worker.run(os.getpid)) for _ in range(3)]
    with pytest.raises(WorkerFailed, match="died"):
        await first
    assert len(set(await asyncio.gather(*waiting))) == 1
    await worker.close()


def busy(seconds: float, pause: float = 0.0) -> float:
    """Use processor time, as a build does. ``pause``: seconds of rest after each twentieth of a second."""
    until = time.process_time() + seconds
    while (now := time.process_time()) < until:
        while time.process_time() < now + 0.05:
            pass
        time.sleep(pause)
    return seconds


async def test_limit_of_a_build_is_processor_time() -> None:
    """A core that others use as well makes a build longer by the clock, not dearer."""
    worker = Worker(timeout=DEADLINE)
    await worker.start()
    worker._timeout = 4.0
    assert await worker.run(busy, 1.0, 0.25) == 1.0  # a sixth of a core, for longer than the limit
    worker._timeout = 1.5
    with pytest.raises(WorkerFailed, match="not done after"):
        await worker.run(busy, 3600.0)
    await worker.close()


async def test_worker_that_is_killed_says_what_to_do(caplog: pytest.LogCaptureFixture) -> None:
    worker = Worker(timeout=DEADLINE)
    pid = await worker.run(os.getpid)
    running = asyncio.create_task(worker.run(time.sleep, 3600))
    await asyncio.sleep(0.05)
    os.kill(pid, signal.SIGKILL)  # as the kernel does
    with pytest.raises(WorkerFailed, match=r"signal 9.*memory limit"):
        await running
    assert [record.message for record in caplog.records if "signal 9" in record.message]
    assert await worker.run(os.getpid) != pid
    await worker.close()


async def test_worker_that_died_while_idle_is_replaced_without_a_failure() -> None:
    worker = Worker(timeout=DEADLINE)
    pid = await worker.run(os.getpid)
    os.kill(pid, signal.SIGKILL)
    await until_gone(pid)
    assert await worker.run(os.getpid) != pid
    await worker.close()


async def test_build_that_takes_too_long_is_killed() -> None:
    worker = Worker(timeout=DEADLINE)
    pid = await worker.run(os.getpid)
    worker._timeout = 0.2
    with pytest.raises(WorkerFailed, match="not done after"):
        await worker.run(time.sleep, 3600)
    await until_gone(pid)
    worker._timeout = DEADLINE
    assert await worker.run(os.getpid) != pid
    await worker.close()


async def test_caller_that_leaves_while_it_waits_kills_nobody_else_s_build() -> None:
    worker = Worker(timeout=DEADLINE)
    pid = await worker.run(os.getpid)
    running = asyncio.create_task(worker.run(time.sleep, 0.3))
    await asyncio.sleep(0.05)
    waiting = asyncio.create_task(worker.run(os.getpid))
    await asyncio.sleep(0.05)
    waiting.cancel()
    await running
    assert await worker.run(os.getpid) == pid
    await worker.close()


async def test_caller_that_leaves_during_its_build_ends_it() -> None:
    worker = Worker(timeout=DEADLINE)
    pid = await worker.run(os.getpid)
    running = asyncio.create_task(worker.run(time.sleep, 3600))
    await asyncio.sleep(0.05)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await until_gone(pid)
    assert await worker.run(os.getpid) != pid
    await worker.close()


async def test_starting_does_not_hold_up_the_loop_nor_end_with_its_first_caller() -> None:
    worker = Worker(timeout=DEADLINE)
    turns = 0
    first = asyncio.create_task(worker.run(os.getpid))
    for _ in range(5):
        await asyncio.sleep(0)
        turns += not first.done()
    assert turns == 5  # the loop came round while the process was being started
    first.cancel()
    assert await worker.run(os.getpid) != os.getpid()
    await worker.close()


async def test_memo_is_kept_between_builds() -> None:
    worker = Worker(timeout=DEADLINE)
    assert await worker.build(id) == await worker.build(id)
    await worker.close()


async def test_worker_closed_while_it_starts_leaves_no_process() -> None:
    worker = Worker(timeout=DEADLINE)
    first = asyncio.create_task(worker.run(os.getpid))
    await asyncio.sleep(0)
    process = worker._process
    assert process is not None
    first.cancel()
    await worker.close()
    with pytest.raises(EOFError):
        await process.started
    assert not is_alive_in(process)


async def test_process_that_is_ended_twice_is_gone_once() -> None:
    process = WorkerProcess()
    await process.started
    await asyncio.gather(process.end(), process.end())
    await process.end()
    assert not is_alive(process.pid)


async def test_reader_closed_while_it_starts_begins_no_other_process() -> None:
    reader = Reader()
    start = asyncio.create_task(reader.start())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    await reader.close()
    await asyncio.gather(start, return_exceptions=True)
    await until_threads_end()
    assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]


@pytest.mark.parametrize("is_killed_before", [False, True])
async def test_nothing_of_a_closed_worker_is_left_for_the_interpreter_to_end(is_killed_before: bool) -> None:
    worker = Worker(timeout=DEADLINE)
    pid = await worker.run(os.getpid)
    if is_killed_before:
        worker.end()
    await worker.close()
    assert not is_alive(pid)
    await until_threads_end()


async def test_worker_that_was_started_has_its_process_when_work_comes() -> None:
    worker = Worker(timeout=DEADLINE)
    await worker.start()
    assert worker._process is not None
    pid = worker._process.pid
    assert await worker.run(os.getpid) == pid
    await worker.close()


async def test_worker_that_does_not_start_says_so_once_and_tells_whoever_brings_work(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(jobs: Connection) -> None:
        raise OSError(errno.EMFILE, "too many open files")

    worker = Worker(timeout=DEADLINE)
    caplog.set_level(logging.INFO)
    monkeypatch.setattr(workers, "PAUSE_MIN", 0.0)
    with monkeypatch.context() as patched:
        patched.setattr(workers, "_launch", fails)
        await worker.start()
        with pytest.raises(NoWorker, match="too many open files"):
            await worker.run(os.getpid)
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    assert await worker.run(os.getpid) != os.getpid()
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"]
    await worker.close()


async def test_service_without_memory_for_a_thread_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def starts_no_thread(pool: ThreadPoolExecutor) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(ThreadPoolExecutor, "_adjust_thread_count", starts_no_thread)
    worker = Worker(timeout=DEADLINE)
    async with asyncio.timeout(DEADLINE):
        with pytest.raises(NoWorker, match="can't start new thread"):
            await worker.run(os.getpid)
        await worker.close()


def forkserver_pid() -> int:
    pid: int = forkserver._forkserver._forkserver_pid  # type: ignore[attr-defined]
    return pid


async def test_stopped_worker_is_gone_once_it_is_closed() -> None:
    worker = Worker(timeout=DEADLINE)
    pid = await worker.run(os.getpid)
    os.kill(pid, signal.SIGSTOP)
    async with asyncio.timeout(DEADLINE):
        await worker.close()
    assert not is_alive(pid)
    await until_threads_end()


@pytest.mark.parametrize("is_starting", [False, True])
async def test_stopped_fork_server_holds_no_end_up(is_starting: bool) -> None:
    worker, other = Worker(timeout=DEADLINE), Worker(timeout=DEADLINE)
    pid = await worker.run(os.getpid)
    helper = forkserver_pid()
    os.kill(helper, signal.SIGSTOP)
    if is_starting:
        starting = asyncio.create_task(other.start())
        await asyncio.sleep(0.2)
    async with asyncio.timeout(DEADLINE):
        await asyncio.gather(worker.close(), other.close())
        if is_starting:
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            await other.close()
    assert not is_alive(pid)
    assert Path(f"/proc/{helper}/stat").read_text().split()[2] != "T"
    assert await worker.run(os.getpid) != pid
    await worker.close()
    await until_threads_end()


async def test_fork_server_that_forks_nothing_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "START_MAX", 1.0)
    monkeypatch.setattr(workers, "PAUSE_MIN", 0.0)
    monkeypatch.setattr(workers, "END_MAX", 0.2)
    worker = Worker(timeout=DEADLINE)
    await worker.run(os.getpid)
    worker.end()
    await worker.close()
    os.kill(forkserver_pid(), signal.SIGSTOP)
    with pytest.raises(NoWorker, match="not in time"):
        await worker.run(os.getpid)
    monkeypatch.undo()
    assert await worker.run(os.getpid) != os.getpid()
    await worker.close()


async def test_start_that_fails_is_tried_again_after_twice_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = 0

    def fails(jobs: Connection) -> None:
        nonlocal tried
        tried += 1
        raise OSError(errno.EAGAIN, "no more processes")

    loop = asyncio.get_running_loop()
    now = loop.time()
    worker = Worker(timeout=DEADLINE)
    monkeypatch.setattr(workers, "_launch", fails)
    monkeypatch.setattr(loop, "time", lambda: now)
    for second in range(600):
        now += 1.0
        with pytest.raises(NoWorker, match="no more processes"):
            await worker.run(os.getpid)
        if second == 6:
            assert tried == 3  # after 0, 1 and 3 seconds
    assert 10 <= tried <= 17
    await worker.close()


def half_a_result() -> None:
    """End as one that is killed while it writes a result."""
    gc.unfreeze()  # what a worker began with is not listed else
    for pipe in gc.get_objects():
        if isinstance(pipe, Connection):
            os.write(pipe.fileno(), struct.pack("!i", 1000) + b"half")
    os._exit(9)


async def test_worker_that_is_killed_as_it_writes_a_result_holds_nobody_up() -> None:
    worker = Worker(timeout=DEADLINE)
    await worker.run(os.getpid)
    with pytest.raises(WorkerFailed, match="died"):
        await worker.run(half_a_result)
    async with asyncio.timeout(DEADLINE):
        assert await worker.run(os.getpid) != os.getpid()
        await worker.close()
    await until_threads_end()


async def test_worker_starts_again_when_the_fork_server_ends_as_it_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As where the fork server is killed: Python says EOFError (multiprocessing.forkserver.read_signed)."""
    start = workers._launch
    failures = [EOFError("unexpected EOF")]

    def starts_late(jobs: Connection) -> BaseProcess:
        if failures:
            raise failures.pop()
        return start(jobs)

    worker = Worker(timeout=DEADLINE)
    monkeypatch.setattr(workers, "PAUSE_MIN", 0.0)
    monkeypatch.setattr(workers, "_launch", starts_late)
    assert await worker.run(os.getpid) != os.getpid()
    failures.extend([EOFError("unexpected EOF")] * 2)
    worker.end()
    with pytest.raises(WorkerFailed, match="died at once"):
        await worker.run(os.getpid)
    assert await worker.run(os.getpid) != os.getpid()
    await worker.close()


def test_cycles_are_looked_for_rarely_and_among_what_is_new() -> None:
    async def main() -> tuple[int, int]:
        worker = Worker(timeout=30.0)
        try:
            return (await worker.run(gc.get_threshold))[0], await worker.run(gc.get_freeze_count)
        finally:
            await worker.close()

    threshold, frozen = asyncio.run(main())
    assert 10_000 <= threshold <= 100_000
    assert frozen > 10_000


OWN_PRELOADED = [name for name in workers.PRELOADED if name.startswith("specmux")]
"""All but what a test adds."""


def imported_once() -> set[str]:
    program = f"import sys, {', '.join(OWN_PRELOADED)}; print(*sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
    )
    return set(found.stdout.split())


async def test_a_worker_imports_nothing_of_its_own_to_begin() -> None:
    worker = Worker(timeout=DEADLINE)
    try:
        modules = set(await worker.run(eval, "[*__import__('sys').modules]"))
    finally:
        await worker.close()
    own = {
        name for name in modules - imported_once() if name.startswith(("specmux", "asyncio", "concurrent"))
    }
    assert own == set()


def test_what_the_fork_server_imports_is_there_and_brings_no_client_of_http() -> None:
    """A name that is not there would be passed over without a word, and each worker would import it."""
    modules = imported_once()
    assert set(OWN_PRELOADED) < modules
    assert modules.isdisjoint({"xml.sax.saxutils", "urllib.request", "http.client"})
