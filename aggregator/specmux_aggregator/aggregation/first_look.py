"""Whether the first look at all backends is still under way.

Until it ends an empty list of documents would tell clients that there are no APIs. It ends once every backend
has been tried, or after BOUND; and it never begins again: a backend that is configured later takes nothing
away. What one backend has is served at once: another that does not answer delays nobody.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final

from specmux_aggregator.model.observation import Observation

BOUND: Final = 10.0
"""Seconds after which what is known is served, whoever has not answered."""


class FirstLook:
    """Of one service. ``observations``: of all backends that are known now; ``is_settled``: it is known which
    backends there are."""

    def __init__(
        self,
        observations: Callable[[], Iterable[Observation]],
        *,
        is_settled: Callable[[], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._observations = observations
        self._is_settled = is_settled
        self._clock = clock
        self._ends_at: float | None = None
        self._is_over = False

    def start(self) -> None:
        self._ends_at = self._clock() + BOUND

    def runs(self) -> bool:
        if self._is_over or self._ends_at is None:
            return False
        has_all = self._is_settled() and all(each.attempted for each in self._observations())
        self._is_over = has_all or self._clock() >= self._ends_at
        return not self._is_over
