"""How long the first look at the backends lasts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specmux_aggregator.aggregation.first_look import BOUND, BUILD_BOUND, FirstLook
from specmux_aggregator.model.backend import Backend, BackendKind, BackendName, ClusterFacts
from specmux_aggregator.model.failure import Cause, Failure
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


def test_what_is_empty_stays_unknown_however_long_that_takes() -> None:
    world = World()
    world.now = 1000 * BOUND
    assert world.look.is_pending()
    assert world.look.name_missing() == "a, b"
    world.answer(1)
    assert world.look.name_missing() == "b"
    world.answer(2)
    assert not world.look.is_pending()
    world.answer(0)
    assert not world.look.is_pending()


def test_definitions_of_a_cluster_are_waited_for_until_they_were_built() -> None:
    world = World()
    found = Backend(name=BackendName("crds"), kind=BackendKind.CRDS, found=ClusterFacts(cluster="https://x"))
    failed = Observation(backend=found, attempted=True, failure=Failure(Cause.TIMEOUT, "not listed yet"))
    apiserver = Backend(name=BackendName("kubernetes"), url="https://x", found=ClusterFacts(is_fallback=True))
    standing_in = Observation(backend=apiserver, attempted=True)
    other = replace(failed, backend=replace(found, name=BackendName("d"), found=None))
    world.observations = [standing_in, failed, other]
    assert world.look.unbuilt() == ["crds"]
    world.observations = [standing_in, replace(failed, failure=None)]
    assert world.look.unbuilt() == []
    world.observations = [replace(standing_in, failure=failed.failure), failed]
    assert world.look.unbuilt() == []
    world.observations = [standing_in, failed]
    world.now = BUILD_BOUND
    assert world.look.unbuilt() == []


def test_it_never_begins_again() -> None:
    world = World()
    world.answer(2)
    assert not world.look.runs()
    world.answer(1)
    assert not world.look.runs()


def test_without_a_start_there_is_none() -> None:
    assert not FirstLook(lambda: (), is_settled=lambda: False).runs()
