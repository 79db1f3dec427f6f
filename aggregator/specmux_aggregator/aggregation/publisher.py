"""The current Snapshot, replaced as a whole when an observation changes.

Readers take ``current`` once per request, without a lock. Changes in quick succession are published together.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping
from typing import Final

from specmux_aggregator.aggregation.ownership import merge
from specmux_aggregator.documents.archive import StateDirectory
from specmux_aggregator.documents.representations import Representations
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.backend import BackendName
from specmux_aggregator.model.observation import Observation
from specmux_aggregator.model.snapshot import DocumentKey, OwnershipConflict, Snapshot
from specmux_aggregator.tasks import Coalescer
from specmux_converters.group_versions import GroupVersion
from specmux_converters.media_types import JSON

logger = logging.getLogger(__name__)

INLINE_MAX: Final = 500
"""Most group-versions merged on the event loop, which takes some milliseconds."""

GATHER = 0.02
"""Seconds for which changes of several backends are collected, so that a burst rebuilds the root once."""

REST = 4.0
"""Pause before the next publication, as a multiple of the duration of the last one."""


class Publisher:
    """Owns the observations of all backends and the Snapshot made of them."""

    def __init__(
        self,
        representations: Representations,
        *,
        timed: Callable[[str, str, float], None],
        archive: StateDirectory | None = None,
    ) -> None:
        """``archive`` receives everything that is published."""
        self._representations = representations
        self._timed = timed
        self._archive = archive
        self._subscribers: list[Callable[[Snapshot], None]] = []
        self._observations: dict[BackendName, Observation] = {}
        self._publication = Coalescer(
            self._publish_all,
            logger=logger,
            failure="a Snapshot could not be published",
            gather=GATHER,
            rest=REST,
        )
        self.current: Snapshot = merge({}, generation=0)
        self._keep_root()

    async def publish(self, observation: Observation, bodies: Mapping[GroupVersion, bytes]) -> None:
        """Accept a changed observation with the gzipped JSON of documents built for it; returns once clients
        can see it."""
        name = observation.backend.name
        for group_version, body in bodies.items():
            key = DocumentKey(name, group_version, observation.offers[group_version].hash)
            self._representations.put(key, JSON, Coding.GZIP, body, pin=True)
        self._observations[name] = observation
        await asyncio.shield(self._publication.ask())
        if self._archive is not None:
            self._archive.remember(observation, bodies)

    def subscribe(self, published: Callable[[Snapshot], None]) -> None:
        """Call ``published`` with every future Snapshot as soon as clients can see it. It must neither wait
        nor raise."""
        self._subscribers.append(published)

    async def replace_backends(self, observations: Mapping[BackendName, Observation]) -> None:
        """Remove backends that are gone, and add those that are new or configured anew."""
        self._observations = dict(observations)
        await asyncio.shield(self._publication.ask())

    async def _publish_all(self) -> None:
        started = time.perf_counter()
        last = self.current
        self.current = await self._merge_observations(generation=last.generation + 1)
        self._keep_root()
        self._representations.keep_only(self._list_wanted())
        self._timed("publish", "ok", time.perf_counter() - started)
        _log_conflicts(last.conflicts, self.current.conflicts)
        for published in self._subscribers:
            published(self.current)

    async def _merge_observations(self, *, generation: int) -> Snapshot:
        """Merge the current observations, in a thread if there are many."""
        observations = dict(self._observations)
        if sum(len(observation.offers) for observation in observations.values()) <= INLINE_MAX:
            return merge(observations, generation=generation)
        return await asyncio.to_thread(merge, observations, generation=generation)

    def _keep_root(self) -> None:
        root = self.current
        self._representations.put(root.root, JSON, Coding.IDENTITY, root.root_json, pin=True)

    def _list_wanted(self) -> set[DocumentKey]:
        """Documents that clients may request, or that may win their group-version back without being built
        again."""
        wanted = {self.current.root}
        # Include those of the Snapshot: an observation may have changed during the merge.
        for observations in (self.current.observations, self._observations):
            for name, observation in observations.items():
                if observations is self._observations and observation is self.current.observations.get(name):
                    continue
                wanted.update(DocumentKey(name, key, offer.hash) for key, offer in observation.offers.items())
        return wanted


def _log_conflicts(last: tuple[OwnershipConflict, ...], now: tuple[OwnershipConflict, ...]) -> None:
    if last == now:
        return
    for conflict in (conflict for conflict in now if conflict not in last):
        logger.warning(
            "the OpenAPI spec of %s is offered by several backends: %s serves it, not %s",
            conflict.group_version,
            conflict.winner,
            ", ".join(conflict.losers),
        )
    for group_version in {conflict.group_version for conflict in last} - {
        conflict.group_version for conflict in now
    }:
        logger.info("the OpenAPI spec of %s is offered by one backend only now", group_version)
