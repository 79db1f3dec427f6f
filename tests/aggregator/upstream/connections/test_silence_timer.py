"""A timer whose handle stays, against a clock that is set by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from specmux_aggregator.upstream.connections.parsed_messages import EARLY, SilenceTimer


class Timer:
    def __init__(self, when: float, call: Callable[[], None]) -> None:
        self.when = when
        self.call = call
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class Clock:
    """As much of an event loop as timers are."""

    def __init__(self) -> None:
        self.now = 100.0
        self.timers: list[Timer] = []
        self.made = 0

    def time(self) -> float:
        return self.now

    def call_at(self, when: float, call: Callable[[], None]) -> Timer:
        self.made += 1
        self.timers.append(Timer(when, call))
        return self.timers[-1]

    def pass_until(self, moment: float) -> None:
        while due := [each for each in self.timers if each.when <= moment and not each.is_cancelled]:
            first = min(due, key=lambda each: each.when)
            self.timers.remove(first)
            self.now = first.when
            first.call()
        self.now = moment


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def silences() -> list[float]:
    """When it was silent for too long."""
    return []


@pytest.fixture
def timer(clock: Clock, silences: list[float]) -> SilenceTimer:
    loop: Any = clock
    made = SilenceTimer(loop, lambda: silences.append(clock.now))
    made.seconds = 10.0
    return made


def test_silence_is_told_once_when_its_time_is_over(
    clock: Clock, timer: SilenceTimer, silences: list[float]
) -> None:
    timer.start()
    clock.pass_until(109.9)
    assert silences == []
    clock.pass_until(1_000.0)
    assert silences == [110.0]


def test_whatever_comes_puts_it_off_without_a_handle_more(
    clock: Clock, timer: SilenceTimer, silences: list[float]
) -> None:
    for moment in range(100, 200):
        clock.pass_until(moment)
        timer.start()
    assert clock.made <= 11
    clock.pass_until(300.0)
    assert silences == [209.0]


def test_nothing_is_waited_for_between_requests(
    clock: Clock, timer: SilenceTimer, silences: list[float]
) -> None:
    timer.start()
    timer.stop()
    clock.pass_until(1_000.0)
    assert silences == []
    assert not clock.timers
    timer.start()
    clock.pass_until(1_010.0)
    assert silences == [1_010.0]


def test_a_pause_counts_for_nothing(clock: Clock, timer: SilenceTimer, silences: list[float]) -> None:
    timer.start()
    clock.pass_until(105.0)
    timer.stop()
    clock.pass_until(112.0)
    timer.start()
    clock.pass_until(200.0)
    assert silences == [122.0]


def test_a_request_that_waits_less_long_is_ended_earlier(
    clock: Clock, timer: SilenceTimer, silences: list[float]
) -> None:
    timer.start()
    timer.stop()
    timer.seconds = 2.0
    timer.start()
    clock.pass_until(200.0)
    assert silences == [102.0]
    assert all(each.is_cancelled for each in clock.timers)


def test_without_a_time_there_is_no_handle(clock: Clock, timer: SilenceTimer) -> None:
    timer.seconds = None
    timer.start()
    assert not clock.made


def test_a_handle_that_goes_off_early_is_taken_for_exact(
    clock: Clock, timer: SilenceTimer, silences: list[float]
) -> None:
    timer.start()
    clock.now = 110.0 - EARLY / 2
    clock.timers.pop().call()
    assert len(silences) == 1


def test_a_closed_one_leaves_no_handle(clock: Clock, timer: SilenceTimer) -> None:
    timer.start()
    timer.close()
    assert all(each.is_cancelled for each in clock.timers)
