"""How long the first look at the backends lasts."""

from __future__ import annotations

import pytest

from specmux_aggregator.aggregation.first_look import BOUND, FirstLook
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_aggregator.model.observation import Observation


class World:
    def __init__(self) -> None:
        self.now, self.is_settled = 0.0, True
        self.observations = [Observation(backend=Backend(name=BackendName(name))) for name in "ab"]
        self.look = FirstLook(
            lambda: self.observations, is_settled=lambda: self.is_settled, clock=lambda: self.now
        )
        self.look.start()

    def answer(self, count: int) -> None:
        backends = [each.backend for each in self.observations]
        self.observations = [
            Observation(backend=backend, attempted=number < count) for number, backend in enumerate(backends)
        ]


@pytest.mark.parametrize(("answered", "running"), [(0, True), (1, True), (2, False)])
def test_it_runs_until_every_backend_was_tried(answered: int, running: bool) -> None:
    world = World()
    world.answer(answered)
    assert world.look.runs() is running


def test_it_waits_for_who_says_which_backends_there_are() -> None:
    world = World()
    world.answer(2)
    world.is_settled = False
    assert world.look.runs()


def test_it_ends_by_itself() -> None:
    world = World()
    world.now = BOUND - 0.01
    assert world.look.runs()
    world.now = BOUND
    assert not world.look.runs()


def test_it_never_begins_again() -> None:
    world = World()
    world.answer(2)
    assert not world.look.runs()
    world.answer(1)
    assert not world.look.runs()


def test_without_a_start_there_is_none() -> None:
    assert not FirstLook(lambda: (), is_settled=lambda: False).runs()
