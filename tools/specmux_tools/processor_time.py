"""A limit on the processor time of a part of a job, in a worker process."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

QUERY_SECONDS: Final = 0.2  # of processor time


class QueryTooLong(Exception):
    """A query exceeded its processor time."""


@contextmanager
def limited_time(seconds: float = QUERY_SECONDS) -> Iterator[None]:
    """Raises QueryTooLong when the body exceeds the processor time. Main thread only."""

    def end(*_: Any) -> None:
        raise QueryTooLong

    before = signal.signal(signal.SIGVTALRM, end)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
