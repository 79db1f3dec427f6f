from __future__ import annotations

import asyncio

import pytest

from specmux_cache.reading.calls import IN_THREADS
from specmux_cache.reading.flight import SingleFlight
from specmux_cache.reading.flight_locks import FlightLocks


async def test_flight_when_the_work_fails_every_caller_gets_the_error_and_the_next_tries_again():
    calls = 0

    async def work() -> int:
        nonlocal calls
        calls += 1
        await asyncio.sleep(0)
        if calls == 1:
            raise OSError("first")
        return calls

    flights: SingleFlight[int] = SingleFlight()
    results = await asyncio.gather(*(flights.run("k", work) for _ in range(3)), return_exceptions=True)
    assert [str(result) for result in results] == ["first"] * 3
    assert await flights.run("k", work) == 2
    assert await flights.run("other", work) == 3


async def test_flight_when_closed_ends_what_still_runs():
    ended = []

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    flights: SingleFlight[None] = SingleFlight()
    waiting = asyncio.create_task(flights.run("k", work))
    await asyncio.sleep(0.01)
    await flights.close()
    assert ended
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_lock_when_held_elsewhere_is_waited_for_and_then_given_up(tmp_path):
    one = FlightLocks(tmp_path / "flights", timeout=10.0, calls=IN_THREADS)
    other = FlightLocks(tmp_path / "flights", timeout=0.05, calls=IN_THREADS)
    async with one.held("k") as got:
        assert got
        async with other.held("k") as got_too:
            assert not got_too
    async with other.held("k") as got:
        assert got


async def test_lock_when_there_is_nowhere_for_its_file_is_no_obstacle(tmp_path):
    (tmp_path / "file").write_text("")

    for directory in (None, tmp_path / "file"):
        async with FlightLocks(directory, timeout=1.0, calls=IN_THREADS).held("k") as got:
            assert not got


async def test_lock_files_when_there_are_many_keys_stay_few(tmp_path):
    locks = FlightLocks(tmp_path / "flights", timeout=1.0, calls=IN_THREADS)
    for number in range(300):
        async with locks.held(number):
            pass
    files = list((tmp_path / "flights").iterdir())
    assert len(files) <= 64
    assert all(path.stat().st_size == 0 and path.stat().st_mode & 0o777 == 0o600 for path in files)
