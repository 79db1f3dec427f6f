"""The event loop while the reader is killed and 64 clients ask: it does little at a time, nobody else waits.

Processor time is looked at, not the clock: what another program does with the machine is not in it.
``tests/stress/stress_reader.py`` looks at the clock.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from running.service import Client, directory, service
from shared_data import DATA
from specmux_aggregator.reader.process import ReaderBusy, ReaderFailed
from specmux_tools.reader.state import ReaderState

pytestmark = pytest.mark.long

CLIENTS = 64
KILLS = 4
PAUSE = 1.0
AT_ONCE_MAX = 0.010
"""Seconds of processor time."""
ASKED = (
    "search?q=replicas",
    "search?q=restart+policy",
    "ui/kind/api/v1/Pod",
    "explain/apis/apps/v1/Deployment?recursive",
)


@pytest.fixture
def longest(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """What each callback of the loop took. Python's own collection of garbage, of all tests before, is
    left out."""
    taken: list[float] = []
    run = asyncio.Handle._run

    def measured(handle: asyncio.Handle) -> None:
        before = time.thread_time()
        run(handle)
        taken.append(time.thread_time() - before)

    monkeypatch.setattr(asyncio.Handle, "_run", measured)
    gc.disable()
    yield taken
    gc.enable()


@pytest.mark.long
async def test_loop_does_little_at_a_time_while_the_reader_is_killed(
    longest: list[float], tally: Callable[[str, int], None], caplog: pytest.LogCaptureFixture
) -> None:
    codes: Counter[int] = Counter()

    async def asking(client: Client, number: int) -> None:
        while True:
            number += 1
            status, headers, _ = await client.get(f"/openapi/{ASKED[number % len(ASKED)]}")
            codes[status] += 1
            assert status == 200 or (status in (429, 503) and "Retry-After" in headers), status
            await asyncio.sleep(0.05)

    async with service(directory("release", DATA / "k8s-pairs" / "1.35" / "v3")) as client:
        await client.ready()
        longest.clear()
        tasks = [asyncio.create_task(asking(client, number)) for number in range(CLIENTS)]
        for _ in range(KILLS):
            await asyncio.sleep(PAUSE)
            with contextlib.suppress(ReaderBusy, ReaderFailed, ProcessLookupError):
                os.kill(await client.app._reading._reader.ask(pid), signal.SIGKILL)
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(each, asyncio.CancelledError) for each in ended), ended
    assert codes.total() > CLIENTS
    assert max(longest) < AT_ONCE_MAX
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []
    tally("callbacks of the loop beside a killed reader", len(longest))


def pid(state: ReaderState) -> int:
    return os.getpid()
