"""When documents are let go, and what is said about it. The kernel is a fake here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest

from deadline import DEADLINE
from specmux_aggregator.documents.memory_pressure import (
    MemoryState,
    MemoryUsage,
    MemoryWatch,
)
from specmux_aggregator.workers.worker import return_to_system


class Kernel:
    """Says what the test put there, and counts how often it was asked and how often forms were let go."""

    def __init__(self, percent: int | None) -> None:
        self.percent = percent
        self.looks = 0
        self.sheddings = 0

    def usage(self) -> MemoryUsage | None:
        self.looks += 1
        return None if self.percent is None else MemoryUsage(self.percent << 20, 100 << 20)

    def shed(self) -> int:
        self.sheddings += 1
        return 3

    async def looked(self, times: int = 2) -> None:
        """Until what was put there has been acted upon."""
        until = self.looks + times
        async with asyncio.timeout(DEADLINE):
            while self.looks < until:
                await asyncio.sleep(0.001)


def watched(kernel: Kernel, scenario: Callable[[MemoryWatch], object], *, percent: int = 85) -> MemoryWatch:
    async def run() -> MemoryWatch:
        watch = MemoryWatch(percent=percent, shed=kernel.shed, usage=kernel.usage, interval=0.001)
        watch.start()
        try:
            outcome = scenario(watch)
            if asyncio.iscoroutine(outcome):
                await outcome
        finally:
            await watch.close()
        return watch

    return asyncio.run(run())


def test_nothing_is_let_go_below_the_mark() -> None:
    kernel = Kernel(84)
    watch = watched(kernel, lambda _: kernel.looked(5))
    assert kernel.sheddings == 0
    assert watch.state == MemoryState(share=0.84, is_pressed=False)


def test_every_look_lets_go_while_the_mark_is_passed_and_one_line_tells_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    kernel = Kernel(90)

    async def scenario(watch: MemoryWatch) -> None:
        await kernel.looked(5)
        assert watch.state == MemoryState(share=0.9, is_pressed=True)
        kernel.percent = 82  # below the mark, but not by enough to say that it is over
        await kernel.looked()
        shed = kernel.sheddings
        await kernel.looked(3)
        assert kernel.sheddings == shed
        assert watch.state.is_pressed
        kernel.percent = 70
        await kernel.looked()
        assert not watch.state.is_pressed

    caplog.set_level(logging.INFO)
    watched(kernel, scenario)
    assert kernel.sheddings >= 4
    assert caplog.messages == [
        "90 % of 100 MiB of memory are in use: letting go of documents",
        "70 % of 100 MiB of memory are in use again",
    ]


def test_watch_goes_on_where_the_kernel_says_nothing() -> None:
    kernel = Kernel(None)
    watch = watched(kernel, lambda _: kernel.looked(5))
    assert watch.state == MemoryState(share=None, is_pressed=False)
    assert kernel.sheddings == 0


def test_nobody_looks_when_the_setting_is_zero() -> None:
    kernel = Kernel(99)
    watched(kernel, lambda _: asyncio.sleep(0.05), percent=0)
    assert kernel.looks == 0


def test_free_pages_can_be_given_back_here() -> None:
    return_to_system()
