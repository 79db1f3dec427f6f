"""Whether the first look at all backends is still under way.

Until every backend has been tried an empty list of documents would tell clients that there are no APIs: that
is never served, however long it takes. A list that has something is partial until then, and says so. What is
not there may turn out to exist for BOUND seconds. None of this begins again: a backend that is configured
later takes nothing away. What one backend has is served at once: another that does not answer delays nobody.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final

from specmux_aggregator.model.backend import BackendKind, BackendName
from specmux_aggregator.model.observation import Observation

BOUND: Final = 10.0
"""Seconds after which what is known counts, whoever has not answered."""

BUILD_BOUND: Final = 60.0
"""Seconds for which readiness waits for the first build of a cluster's definitions."""

NAMED: Final = 10
"""Backends without an answer that are named."""


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
        self._started: float | None = None
        self._has_all = False

    def start(self) -> None:
        self._started = self._clock()

    def runs(self) -> bool:
        """Whether what is not there may turn out to exist."""
        return self._is_within(BOUND) and self.is_pending()

    def is_pending(self) -> bool:
        """Whether a backend has not been tried yet, or it is not known which there are."""
        if not self._has_all and self._started is not None:
            self._has_all = self._is_settled() and all(each.attempted for each in self._observations())
        return not self._has_all and self._started is not None

    def missing(self) -> str:
        """What has not answered, for a field of an answer that is partial."""
        names = sorted(each.backend.name for each in self._observations() if not each.attempted)
        more = [f"and {len(names) - NAMED} more"] if len(names) > NAMED else []
        return ", ".join([*names[:NAMED], *more]) or "not every source of backends has answered"

    def unbuilt(self) -> list[BackendName]:
        """Definitions of a cluster that were not built once, and may be soon: until then the apiserver's own
        documents of the same content, but of other hashes, stand in for what other replicas publish."""
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
