from __future__ import annotations

import asyncio
import logging

import pytest

from deadline import DEADLINE
from running.service import backend
from specmux_aggregator.aggregation.backend_sets import BackendSets
from specmux_aggregator.model.backend import Backend


class Force:
    """Takes its time, and notes what was put in force."""

    def __init__(self) -> None:
        self.sets: list[list[str]] = []
        self.running = 0

    async def put(self, backends: tuple[Backend, ...]) -> None:
        self.running += 1
        assert self.running == 1, "two sets at a time"
        await asyncio.sleep(0.01)
        self.sets.append([f"{item.name} {item.url}".strip() for item in backends])
        self.running -= 1


async def test_both_sets_are_in_force_and_the_configuration_keeps_its_names(
    caplog: pytest.LogCaptureFixture,
) -> None:
    force = Force()
    sets = BackendSets(force.put)
    await sets.configure((backend("a", "http://mine"),))
    with caplog.at_level(logging.WARNING):
        sets.find((backend("a", "http://found"), backend("b", "http://b")))
        await sets.configure((backend("a", "http://mine"),))
        assert [record.message for record in caplog.records] == [
            "not taken from the cluster: a: the configuration has a backend of this name"
        ]
        await sets.configure((backend("a", "http://mine"),))
    assert force.sets[-1] == ["a http://mine", "b http://b"]
    assert len(caplog.records) == 1
    assert len(sets.problems) == 1
    await sets.configure(())
    assert force.sets[-1] == ["a http://found", "b http://b"]
    assert sets.problems == ()
    await sets.close()


async def test_burst_of_changes_is_put_in_force_one_after_the_other_and_few_times() -> None:
    force = Force()
    sets = BackendSets(force.put)
    for number in range(50):
        sets.find((backend("b", f"http://b/{number}"),))
        await asyncio.sleep(0.001 if number % 10 == 0 else 0)
    await sets.configure((backend("a", "http://a"),))
    assert force.sets[-1] == ["a http://a", "b http://b/49"]
    assert len(force.sets) < 12
    before = len(force.sets)
    sets.find((backend("b", "http://b/49"),))
    await asyncio.sleep(0.05)
    assert len(force.sets) == before, "nothing changed"
    await sets.close()


async def test_set_that_cannot_be_put_in_force_is_told_and_the_next_one_is_tried(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def put(backends: tuple[Backend, ...]) -> None:
        if backends[0].name == "a":
            raise RuntimeError("a bug")
        done.set()

    done = asyncio.Event()
    sets = BackendSets(put)
    sets.find((backend("a"),))
    await asyncio.sleep(0.01)
    assert "could not be put in force" in caplog.text
    sets.find((backend("b"),))
    async with asyncio.timeout(DEADLINE):
        await done.wait()
    await sets.close()
