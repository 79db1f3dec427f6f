from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deadline import DEADLINE
from specmux_aggregator.aggregation.loop import LONG, TICK, Loop, Pace, due_at


async def test_loop_looks_again_when_its_time_is_over_and_when_it_is_poked() -> None:
    looks = 0

    async def look() -> float | None:
        nonlocal looks
        looks += 1
        return 0.001 if looks < 3 else None

    loop = Loop(look)
    running = asyncio.create_task(loop.run())
    await asyncio.sleep(0.1)
    assert looks == 3
    for _ in range(5):
        loop.poke()
    async with asyncio.timeout(DEADLINE):
        while looks < 4:
            await asyncio.sleep(0.01)
    await asyncio.sleep(0.3)
    assert looks == 4
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


@given(now=st.floats(0, 1e8), seconds=st.floats(LONG, 3600))
def test_long_pauses_end_with_a_tick_and_never_late(now: float, seconds: float) -> None:
    due = due_at(now, seconds)
    assert now + seconds - TICK - 1e-6 <= due <= now + seconds + 1e-6
    assert due / TICK == pytest.approx(round(due / TICK), abs=1e-4)


@pytest.mark.parametrize("seconds", [0.0, 0.01, 1.0, 4.99])
def test_short_pauses_are_as_long_as_they_are_told(seconds: float) -> None:
    assert due_at(1234.567, seconds) == 1234.567 + seconds


async def test_first_looks_are_so_many_at_a_time_and_one_that_hangs_gives_its_place_up() -> None:
    pace, running, most, done = Pace(places=2, held=0.05), 0, 0, 0

    async def look() -> float | None:
        nonlocal running, most, done
        running, most = running + 1, max(most, running + 1)
        await asyncio.sleep(0.001)
        running, done = running - 1, done + 1
        return None

    async def hang() -> float | None:
        await asyncio.Event().wait()
        return None

    tasks = [asyncio.create_task(Loop(look, pace=pace).run()) for _ in range(20)]
    async with asyncio.timeout(DEADLINE):
        while done < 20:
            await asyncio.sleep(0.001)
    assert most == 2
    tasks += [asyncio.create_task(Loop(hang, pace=pace).run()) for _ in range(4)]
    tasks += [asyncio.create_task(Loop(look, pace=pace).run()) for _ in range(20)]
    async with asyncio.timeout(DEADLINE):
        while done < 40:
            await asyncio.sleep(0.001)
    assert pace._places._value == 2
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert pace._places._value == 2, "a place was given back twice"
