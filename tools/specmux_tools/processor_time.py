"""A limit on the processor time of a part of a job, in a worker process."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

QUERY_SECONDS: Final = 0.2  # of processor time


_AGAIN: Final = 0.05
"""Seconds of processor time between two attempts to end a query."""


class QueryTooLong(Exception):
    """A query exceeded its processor time."""


@contextmanager
def limited_time(seconds: float = QUERY_SECONDS) -> Iterator[None]:
    """Raises QueryTooLong when the body exceeds the processor time. Main thread only.

    Python drops an exception that is raised in a finalizer or a callback of the garbage collector, so the
    timer goes on until one arrives.
    """
    is_over = False

    def end(*_: Any) -> None:
        if not is_over:
            raise QueryTooLong

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, _AGAIN)
    try:
        yield
    finally:
        is_over = True
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
