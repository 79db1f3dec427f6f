"""A task that nobody waits for tells of its end when that is a bug, and only then."""

from __future__ import annotations

import asyncio
import logging

import pytest

from specmux_aggregator.tasks import log_failure

logger = logging.getLogger("specmux.test")


async def test_an_error_is_logged_when_the_task_ends(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise RuntimeError("a bug")

    task = asyncio.create_task(fail())
    log_failure(task, logger, "no longer followed")
    await asyncio.wait([task])
    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("ERROR", "no longer followed")
    ]
    assert "RuntimeError: a bug" in caplog.text


async def test_a_good_end_and_a_cancelled_one_are_silent(caplog: pytest.LogCaptureFixture) -> None:
    good, cancelled = asyncio.create_task(asyncio.sleep(0)), asyncio.create_task(asyncio.sleep(60))
    for task in (good, cancelled):
        log_failure(task, logger, "no longer followed")
    cancelled.cancel()
    await asyncio.wait([good, cancelled])
    assert [record for record in caplog.records if record.name == logger.name] == []
