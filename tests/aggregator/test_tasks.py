from __future__ import annotations

import asyncio
import logging
import time
from functools import partial

import pytest

from specmux_aggregator.tasks import Coalescer, finish


class Work:
    """Counts its runs, and fails where it is told to."""

    def __init__(self) -> None:
        self.runs = 0
        self.takes = 0.01
        self.running = 0
        self.error: Exception | None = None

    async def __call__(self) -> None:
        self.running += 1
        assert self.running == 1, "two runs at a time"
        self.runs += 1
        await asyncio.sleep(self.takes)
        self.running -= 1
        if self.error is not None:
            raise self.error


def coalescer(work: Work, **fields: float) -> Coalescer:
    return Coalescer(work, logger=logging.getLogger("test"), failure="the work failed", **fields)


async def test_what_is_asked_for_together_is_done_once_and_meanwhile_once_more() -> None:
    work = Work()
    made = coalescer(work, gather=0.01)
    assert not made.is_settled
    await asyncio.gather(*(asyncio.shield(made.ask()) for _ in range(20)))
    assert work.runs == 1
    assert made.is_settled
    made.ask()
    await asyncio.sleep(0.015)
    waiting = made.ask()
    made.ask()
    await waiting
    assert work.runs == 3
    await made.close()
    await made.ask()
    assert work.runs == 3, "nothing begins once it is closed"


async def test_work_that_takes_long_has_a_rest_before_the_next_run() -> None:
    work = Work()
    made = coalescer(work, rest=4.0)
    started = time.monotonic()
    await made.ask()
    await made.ask()
    assert time.monotonic() - started >= 2 * work.takes + 4 * work.takes - 0.004


async def test_work_that_failed_is_logged_and_done_again_when_it_is_asked_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    work = Work()
    work.error = ValueError("bug")
    made = coalescer(work)
    with pytest.raises(ValueError, match="bug"):
        await made.ask()
    await asyncio.sleep(0)
    assert [record.message for record in caplog.records] == ["the work failed"]
    work.error = None
    await made.ask()
    assert work.runs == 2


def test_every_step_of_an_end_is_taken_whatever_fails(caplog: pytest.LogCaptureFixture) -> None:
    taken: list[int] = []

    def at_once() -> None:
        taken.append(1)
        raise OSError(9, "Bad file descriptor")

    async def awaited(number: int) -> None:
        taken.append(number)
        raise ValueError("no")

    async def last() -> None:
        taken.append(3)

    asyncio.run(finish(logging.getLogger("ends"), at_once, None, partial(awaited, 2), last))
    assert taken == [1, 2, 3]
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]
    assert "at_once failed" in caplog.messages[0]
    assert "Bad file descriptor" in caplog.messages[0]
    assert "awaited failed" in caplog.messages[1]
