"""Discovery of all backends of the Snapshot: what is known of each, and the current DiscoveryIndex."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from specmux_aggregator.aggregation.first_look import BOUND
from specmux_aggregator.aggregation.loop import Pace
from specmux_aggregator.aggregation.publisher import Publisher
from specmux_aggregator.api_discovery.backend_knowledge import Knowledge
from specmux_aggregator.api_discovery.client import BackendDiscovery
from specmux_aggregator.api_discovery.directory import Directory
from specmux_aggregator.api_discovery.encoded_directory import Asked, DiscoveryIndex, PendingAnswer
from specmux_aggregator.api_discovery.follower import DiscoveryFollower
from specmux_aggregator.api_discovery.merge import merge
from specmux_aggregator.api_discovery.synthesis import Synthesis
from specmux_aggregator.config.settings import Settings
from specmux_aggregator.model.backend import BackendName
from specmux_aggregator.model.observation import Observation
from specmux_aggregator.model.snapshot import Snapshot
from specmux_aggregator.tasks import Coalescer
from specmux_cache.reading.single_flight import SingleFlight

if TYPE_CHECKING:  # imported where a backend has a URL
    from specmux_aggregator.backend_sources.servers import ServerSet

logger = logging.getLogger(__name__)

GATHER: Final = 0.02
"""Seconds for which changes of several backends are collected."""

SETTLING: Final = 0.1
"""Seconds between checks whether all sources of backends have reported."""

REST: Final = 4.0
"""Pause before the next DiscoveryIndex, as a multiple of the duration of the last one."""


class DiscoveryWatch:
    """Creates a follower for each backend, which the backend's supervisor runs. Lives on one event loop."""

    def __init__(
        self,
        settings: Settings,
        synthesis: Synthesis,
        *,
        pace: Pace | None = None,
        is_settled: Callable[[], bool] = lambda: True,
    ) -> None:
        """``is_settled``: whether the set of backends is known. ``pace``: shared by all first checks."""
        self._limits = settings.limits
        self._polling = replace(settings.polling, interval=settings.discovery.interval)
        self._grace = settings.discovery.stale_grace
        self._synthesis = synthesis
        self._pace = pace
        self._is_settled = is_settled
        self._renderings: SingleFlight[tuple[DiscoveryIndex, Asked], None] = SingleFlight()
        self._rendering = asyncio.Lock()
        self._followers: dict[BackendName, DiscoveryFollower] = {}
        self._index_due = Coalescer(
            self._put_together,
            logger=logger,
            failure="discovery could not be put together",
            gather=GATHER,
            rest=REST,
        )
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False
        self._has_followed = False
        self._started = 0.0
        """Monotonic seconds of the first Snapshot."""
        self.index = DiscoveryIndex(Directory(), is_complete=False)
        self.generation = 0
        """Increases with each new DiscoveryIndex."""
        self.renewed: Callable[[], None] = lambda: None
        """Called in the turn in which it increases."""

    def follow(self, snapshot: Snapshot) -> None:
        """Note a new Snapshot; backends that are not in it are gone."""
        if self._is_closed:
            return
        if not self._has_followed:
            self._has_followed, self._started = True, time.monotonic()
        for name in self._followers.keys() - snapshot.observations.keys():
            del self._followers[name]
        self.note_change()

    def follower(self, observation: Observation, servers: ServerSet | None) -> DiscoveryFollower:
        """A new follower of one backend; the caller runs it. ``servers``: None for a backend that cannot be
        asked."""
        backend = observation.backend
        asked = None
        if servers is not None:
            asked = BackendDiscovery(
                backend,
                servers.client,
                limits=self._limits.of_roots,
                max_group_versions=self._limits.max_group_versions,
                servers=servers,
            )
        made = DiscoveryFollower(
            observation,
            asked,
            self._synthesis,
            polling=self._polling,
            changed=self.note_change,
            pace=self._pace,
        )
        before = self._followers.get(backend.name)
        if before is not None and backend.has_content_of(before.observation.backend):
            made.inherit(before)
        self._followers[backend.name] = made
        return made

    def note_change(self) -> None:
        """Build a new DiscoveryIndex soon: something new is known."""
        if not self._is_closed:
            self._index_due.ask()

    def followers(self) -> list[DiscoveryFollower]:
        """Sorted by the names of their backends."""
        return [follower for _, follower in sorted(self._followers.items())]

    async def close(self) -> None:
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        await self._index_due.close()
        await self._renderings.close()

    async def _put_together(self) -> None:
        known = [follower.knowledge for follower in self._followers.values()]
        # A backend that is configured later must not take away existing answers.
        has_all = self._has_followed and all(item.attempted for item in known)
        now = time.monotonic()
        is_late = self._has_followed and now >= self._started + BOUND
        is_complete = self.index.is_complete or (has_all and self._is_settled())
        last = self.index
        index = await asyncio.to_thread(
            self._merge_answers, known, now, is_complete=is_complete, is_late=is_late
        )
        directory = last.directory if index is None else index.directory
        # Nothing reports that a cluster has no backends.
        settling = now + SETTLING if has_all else None if is_late else self._started + BOUND
        self._wake_at(directory.changes_at if (index or last).is_complete else settling, now)
        if index is None:
            return
        for asked in index.list_wanted(last.list_asked()):
            await asyncio.to_thread(index.make, asked)
        self.index = index
        self.generation += 1
        self.renewed()

    def _merge_answers(
        self, known: list[Knowledge], now: float, *, is_complete: bool, is_late: bool
    ) -> DiscoveryIndex | None:
        """The answers of this moment; None if they equal the current index. Takes a while for thousands of
        group-versions, so it runs in a thread. ``is_late``: serve what is known, if anything."""
        directory = merge(known, now=now, grace=self._grace)
        is_complete = is_complete or (is_late and bool(directory.versions()))
        is_blind = not directory.versions() and any(item.failure is not None for item in known)
        last = self.index
        if (directory, is_complete, is_blind) == (last.directory, last.is_complete, last.is_blind):
            return None
        return DiscoveryIndex(directory, is_complete=is_complete, is_blind=is_blind)

    async def make(self, unmade: PendingAnswer) -> None:
        """Make the bytes of an answer that was too large to make on request."""
        index, asked = unmade.index, unmade.asked
        await self._renderings.run((index, asked), lambda: self._make_alone(index, asked))

    async def _make_alone(self, index: DiscoveryIndex, asked: Asked) -> None:
        # Each thread that computes holds the event loop up 5 ms at a time; codings of a form share its bytes.
        async with self._rendering:
            await asyncio.to_thread(index.make, asked)

    def _wake_at(self, moment: float | None, now: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if moment is not None:
            self._timer = asyncio.get_running_loop().call_later(moment - now, self.note_change)


def discovery_of(
    settings: Settings,
    publisher: Publisher,
    synthesis: Synthesis,
    *,
    pace: Pace,
    is_settled: Callable[[], bool],
) -> DiscoveryWatch | None:
    """A new watch that follows publications; None if discovery is off."""
    if not settings.discovery.enabled:
        return None
    watch = DiscoveryWatch(settings, synthesis, pace=pace, is_settled=is_settled)
    publisher.subscribe(watch.follow)
    return watch
