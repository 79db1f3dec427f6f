from __future__ import annotations

import asyncio

import pytest

from specmux_cache.reading.client_runtime import IN_THREADS
from specmux_cache.reading.flight_locks import FlightLocks
from specmux_cache.reading.single_flight import SingleFlight


async def test_simultaneous_callers_share_one_run() -> None:
    flights: SingleFlight[str, int] = SingleFlight()
    runs = 0

    async def work() -> int:
        nonlocal runs
        runs += 1
        await asyncio.sleep(0.01)
        return runs

    assert await asyncio.gather(*(flights.run("k", work) for _ in range(100))) == [1] * 100
    assert await flights.run("k", work) == 2


async def test_followers_get_the_result_when_the_leader_is_cancelled() -> None:
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


async def test_failure_reaches_every_caller_and_is_not_kept() -> None:
    flights: SingleFlight[str, str] = SingleFlight()

    async def fail() -> str:
        await asyncio.sleep(0)
        raise ValueError("no")

    async def succeed() -> str:
        return "yes"

    results = await asyncio.gather(*(flights.run("k", fail) for _ in range(3)), return_exceptions=True)
    assert [str(result) for result in results] == ["no"] * 3
    assert await flights.run("k", succeed) == "yes"


async def test_flight_when_closed_ends_what_still_runs():
    ended = []

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    flights: SingleFlight[str, None] = SingleFlight()
    waiting = asyncio.create_task(flights.run("k", work))
    await asyncio.sleep(0.01)
    await flights.close()
    assert ended
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_close_ends_what_has_not_begun() -> None:
    flights: SingleFlight[str, None] = SingleFlight()
    caller = asyncio.create_task(flights.run("k", lambda: asyncio.sleep(60)))
    asyncio.get_running_loop().call_soon(asyncio.create_task, flights.close())
    await asyncio.sleep(0.01)
    assert caller.cancelled()


async def test_run_that_everybody_left_goes_on_and_its_failure_is_nobodys(
    caplog: pytest.LogCaptureFixture,
) -> None:
    flights: SingleFlight[str, str] = SingleFlight()
    runs: list[int] = []

    async def fail() -> str:
        runs.append(1)
        await asyncio.sleep(0.01)
        raise ValueError("no")

    callers = [asyncio.create_task(flights.run("k", fail)) for _ in range(3)]
    await asyncio.sleep(0)
    for caller in callers:
        caller.cancel()
    await asyncio.gather(*callers, return_exceptions=True)
    with pytest.raises(ValueError, match="no"):
        await flights.run("k", fail)
    assert runs == [1]
    assert not caplog.records


async def test_caller_after_the_end_has_the_work_done_again() -> None:
    flights: SingleFlight[str, int] = SingleFlight()
    runs = 0

    async def work() -> int:
        nonlocal runs
        runs += 1
        await asyncio.sleep(0)
        return runs

    async def twice() -> tuple[int, int]:
        return await flights.run("k", work), await flights.run("k", work)

    assert await asyncio.gather(twice(), twice()) == [(1, 2), (1, 2)]


async def test_lock_when_held_elsewhere_is_waited_for_and_then_given_up(tmp_path):
    one = FlightLocks(tmp_path / "flights", timeout=10.0, calls=IN_THREADS)
    other = FlightLocks(tmp_path / "flights", timeout=0.05, calls=IN_THREADS)
    async with one.hold("k") as got:
        assert got
        async with other.hold("k") as got_too:
            assert not got_too
    async with other.hold("k") as got:
        assert got


async def test_lock_when_there_is_nowhere_for_its_file_is_no_obstacle(tmp_path):
    (tmp_path / "file").write_text("")

    for directory in (None, tmp_path / "file"):
        async with FlightLocks(directory, timeout=1.0, calls=IN_THREADS).hold("k") as got:
            assert not got


async def test_lock_files_when_there_are_many_keys_stay_few(tmp_path):
    locks = FlightLocks(tmp_path / "flights", timeout=1.0, calls=IN_THREADS)
    for number in range(300):
        async with locks.hold(number):
            pass
    files = list((tmp_path / "flights").iterdir())
    assert len(files) <= 64
    assert all(path.stat().st_size == 0 and path.stat().st_mode & 0o777 == 0o600 for path in files)
