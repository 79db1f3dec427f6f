"""Whether the first check of all backends is still under way.

Before every backend has been tried, an empty list of documents would tell clients that there are no APIs, so
it is never served. A list with documents is marked as partial until then. A document that is missing may
still appear for BOUND seconds. This period never recurs: a backend configured later takes nothing away.
Documents of one backend are served at once, whichever others have not answered.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final

from specmux_aggregator.model.backend import BackendKind, BackendName
from specmux_aggregator.model.observation import Observation
from specmux_converters.counted_nouns import list_first

BOUND: Final = 10.0
"""Seconds after which the known documents count as all, whichever backends have not answered."""

BUILD_BOUND: Final = 60.0
"""Seconds for which readiness waits for the first build of a cluster's definitions."""

NAMED: Final = 10
"""Backends without an answer that a message names."""


class FirstLook:
    """The first check of one service. ``observations``: of all backends known now; ``is_settled``: whether
    the set of backends is known."""

    def __init__(
        self,
        observations: Callable[[], Iterable[Observation]],
        *,
        is_settled: Callable[[], bool],
        clock: Callable[[], float] = lambda: time.monotonic(),
    ) -> None:
        self._observations = observations
        self._is_settled = is_settled
        self._clock = clock
        self._started: float | None = None
        self._has_all = False

    def start(self) -> None:
        self._started = self._clock()

    def runs(self) -> bool:
        """Whether a missing document may still appear."""
        return self._is_within(BOUND) and self.is_pending()

    def is_pending(self) -> bool:
        """Whether a backend has not been tried yet, or the set of backends is not known yet."""
        if not self._has_all and self._started is not None:
            self._has_all = self._is_settled() and all(each.attempted for each in self._observations())
        return not self._has_all and self._started is not None

    def name_missing(self) -> str:
        """The backends without an answer, for a header field of a partial answer."""
        names = sorted(each.backend.name for each in self._observations() if not each.attempted)
        return list_first(names, NAMED) or "not every source of backends has answered"

    def unbuilt(self) -> list[BackendName]:
        """Backends whose definitions have not been built yet and may be soon. Until then the apiserver's own
        documents stand in, with the same content but other hashes than other replicas publish."""
        observations = tuple(self._observations())
        stands_in = any(each.backend.is_fallback and each.failure is None for each in observations)
        if not stands_in or not self._is_within(BUILD_BOUND):
            return []
        return [each.backend.name for each in observations if _is_unbuilt(each)]

    def _is_within(self, seconds: float) -> bool:
        return self._started is not None and self._clock() < self._started + seconds


def _is_unbuilt(observation: Observation) -> bool:
    backend = observation.backend
    is_of_cluster = backend.kind is BackendKind.CRDS and backend.found is not None
    return is_of_cluster and observation.failure is not None and not observation.offers
