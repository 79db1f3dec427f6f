from __future__ import annotations

import asyncio

import pytest

from specmux_aggregator.tasks import SingleFlight


def test_simultaneous_callers_share_one_run() -> None:
    async def scenario() -> None:
        flights: SingleFlight[str, int] = SingleFlight()
        runs = 0

        async def work() -> int:
            nonlocal runs
            runs += 1
            await asyncio.sleep(0.01)
            return runs

        assert await asyncio.gather(*(flights.run("k", work) for _ in range(100))) == [1] * 100
        assert await flights.run("k", work) == 2

    asyncio.run(scenario())


def test_followers_get_the_result_when_the_leader_is_cancelled() -> None:
    async def scenario() -> None:
        flights: SingleFlight[str, str] = SingleFlight()
        gate = asyncio.Event()

        async def work() -> str:
            await gate.wait()
            return "done"

        leader = asyncio.create_task(flights.run("k", work))
        await asyncio.sleep(0)
        follower = asyncio.create_task(flights.run("k", work))
        await asyncio.sleep(0)
        leader.cancel()
        gate.set()
        assert await follower == "done"
        with pytest.raises(asyncio.CancelledError):
            await leader

    asyncio.run(scenario())


def test_failure_reaches_every_caller_and_is_not_kept() -> None:
    async def scenario() -> None:
        flights: SingleFlight[str, str] = SingleFlight()

        async def fail() -> str:
            await asyncio.sleep(0)
            raise ValueError("no")

        async def succeed() -> str:
            return "yes"

        results = await asyncio.gather(*(flights.run("k", fail) for _ in range(3)), return_exceptions=True)
        assert [str(result) for result in results] == ["no"] * 3
        assert await flights.run("k", succeed) == "yes"

    asyncio.run(scenario())


def test_close_ends_what_still_runs() -> None:
    async def scenario() -> None:
        flights: SingleFlight[str, None] = SingleFlight()
        caller = asyncio.create_task(flights.run("k", lambda: asyncio.sleep(60)))
        await asyncio.sleep(0)
        await flights.close()
        with pytest.raises(asyncio.CancelledError):
            await caller

    asyncio.run(scenario())
