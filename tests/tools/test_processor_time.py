"""The limit on the processor time of a query."""

from __future__ import annotations

import signal
import time

import pytest

from specmux_tools.processor_time import QueryTooLong, limited_time


def spin(seconds: float) -> None:
    """Take ``seconds`` of the processor's time."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def test_query_beyond_its_time_ends() -> None:
    with pytest.raises(QueryTooLong), limited_time(0.01):
        spin(60)
    assert signal.getitimer(signal.ITIMER_VIRTUAL) == (0.0, 0.0)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_query_ends_though_a_finalizer_took_the_exception() -> None:
    class Slow:
        def __del__(self) -> None:
            spin(0.5)

    ended_in_finalizer = False
    with pytest.raises(QueryTooLong), limited_time(0.05):
        Slow()
        ended_in_finalizer = True
        spin(60)
    assert ended_in_finalizer


def test_query_within_its_time_is_left_alone() -> None:
    with limited_time(60):
        spin(0.01)
    spin(0.05)
