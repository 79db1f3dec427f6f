"""Discovery of all backends of the Snapshot: what is known of each, and the DiscoveryIndex that answers come
from."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from specmux_aggregator.aggregation.first_look import BOUND
from specmux_aggregator.aggregation.loop import Pace
from specmux_aggregator.aggregation.publisher import Publisher
from specmux_aggregator.config.settings import Settings
from specmux_aggregator.discovery.client import BackendDiscovery
from specmux_aggregator.discovery.directory import Directory
from specmux_aggregator.discovery.follower import DiscoveryFollower
from specmux_aggregator.discovery.index import Asked, DiscoveryIndex, PendingAnswer
from specmux_aggregator.discovery.merge import merge
from specmux_aggregator.discovery.rendering import render
from specmux_aggregator.discovery.state import Knowledge
from specmux_aggregator.discovery.synthesis import Synthesis
from specmux_aggregator.model.backend import BackendName
from specmux_aggregator.model.observation import Observation
from specmux_aggregator.model.snapshot import Snapshot
from specmux_aggregator.origins.peers import Peers
from specmux_aggregator.tasks import Coalescer
from specmux_aggregator.upstream.client import BackendClient
from specmux_cache.reading.flight import SingleFlight

logger = logging.getLogger(__name__)

GATHER: Final = 0.02
"""Seconds in which changes of several backends are gathered."""

SETTLING: Final = 0.1
"""Seconds between looks whether all sources of backends have been heard."""

REST: Final = 4.0
"""Times what putting a DiscoveryIndex together took, until the next."""


class DiscoveryWatch:
    """Makes a follower for each backend, which the backend's supervisor runs. Lives on one event loop."""

    def __init__(
        self,
        settings: Settings,
        synthesis: Synthesis,
        *,
        pace: Pace | None = None,
        is_settled: Callable[[], bool] = lambda: True,
    ) -> None:
        """``is_settled``: it is known which backends there are. ``pace``: that of all first looks."""
        self._limits = settings.limits
        self._polling = replace(settings.polling, interval=settings.discovery.interval)
        self._grace = settings.discovery.stale_grace
        self._synthesis = synthesis
        self._pace = pace
        self._is_settled = is_settled
        self._renderings: SingleFlight[tuple[DiscoveryIndex, Asked], None] = SingleFlight()
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
        """Monotonic seconds of the first Snapshot that was followed."""
        self.index = DiscoveryIndex(Directory(), is_complete=False)
        self.generation = 0
        """Rises whenever another DiscoveryIndex is in force."""

    def follow(self, snapshot: Snapshot) -> None:
        """A Snapshot was published: a backend that is not in it is gone."""
        if self._is_closed:
            return
        if not self._has_followed:
            self._has_followed, self._started = True, time.monotonic()
        for name in self._followers.keys() - snapshot.observations.keys():
            del self._followers[name]
        self.changed()

    def follower(
        self, observation: Observation, client: BackendClient | None, peers: Peers | None
    ) -> DiscoveryFollower:
        """That of one backend from now on; whoever asks for it runs it. ``client``: None for a backend that
        cannot be asked. ``peers``: the servers behind its address."""
        backend = observation.backend
        asked = None
        if client is not None:
            asked = BackendDiscovery(
                backend,
                client,
                limits=self._limits.of_roots,
                max_group_versions=self._limits.max_group_versions,
                peers=peers,
            )
        made = DiscoveryFollower(
            observation,
            asked,
            self._synthesis,
            polling=self._polling,
            changed=self.changed,
            pace=self._pace,
        )
        before = self._followers.get(backend.name)
        if before is not None and before.observation.backend.address == backend.address:
            made.inherit(before)
        self._followers[backend.name] = made
        return made

    def changed(self) -> None:
        """Something is known that was not: put a new DiscoveryIndex in force soon."""
        if not self._is_closed:
            self._index_due.ask()

    def followers(self) -> list[DiscoveryFollower]:
        """By the names of their backends."""
        return [follower for _, follower in sorted(self._followers.items())]

    async def close(self) -> None:
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        await self._index_due.close()
        await self._renderings.close()

    async def _put_together(self) -> None:
        known = [follower.knowledge for follower in self._followers.values()]
        # A backend that is configured later must not take away what is answered already.
        has_all = self._has_followed and all(item.attempted for item in known)
        now = time.monotonic()
        is_late = self._has_followed and now >= self._started + BOUND
        is_complete = self.index.is_complete or (has_all and self._is_settled())
        last = self.index
        index = await asyncio.to_thread(self._merged, known, now, is_complete=is_complete, is_late=is_late)
        directory = last.directory if index is None else index.directory
        # Nobody tells when a cluster turns out to have no backends.
        settling = now + SETTLING if has_all else None if is_late else self._started + BOUND
        self._wake_at(directory.changes_at if (index or last).is_complete else settling, now)
        if index is None:
            return
        for asked in index.wanted(last.asked()):
            await render(index, asked)
        self.index = index
        self.generation += 1

    def _merged(
        self, known: list[Knowledge], now: float, *, is_complete: bool, is_late: bool
    ) -> DiscoveryIndex | None:
        """The answers of this moment; None where they are those of the index in force. Of thousands of
        group-versions this takes a while, so it is done in a thread. ``is_late``: what is known is served,
        if that is anything."""
        directory = merge(known, now=now, grace=self._grace)
        is_complete = is_complete or (is_late and bool(directory.versions()))
        is_blind = not directory.versions() and any(item.failure is not None for item in known)
        last = self.index
        if (directory, is_complete, is_blind) == (last.directory, last.is_complete, last.is_blind):
            return None
        return DiscoveryIndex(directory, is_complete=is_complete, is_blind=is_blind)

    async def make(self, unmade: PendingAnswer) -> None:
        """Have the bytes of an answer at hand that were too many to be made at once."""
        await self._renderings.run((unmade.index, unmade.asked), lambda: render(unmade.index, unmade.asked))

    def _wake_at(self, moment: float | None, now: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if moment is not None:
            self._timer = asyncio.get_running_loop().call_later(moment - now, self.changed)


def discovery_of(
    settings: Settings,
    publisher: Publisher,
    synthesis: Synthesis,
    *,
    pace: Pace,
    is_settled: Callable[[], bool],
) -> DiscoveryWatch | None:
    """A new watch, which follows what is published; None where discovery is off."""
    if not settings.discovery.enabled:
        return None
    watch = DiscoveryWatch(settings, synthesis, pace=pace, is_settled=is_settled)
    publisher.subscribe(watch.follow)
    return watch
