"""Discovery of all backends of the Snapshot: a follower for each, and the DiscoveryIndex that answers come
from."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from specmux_aggregator.aggregation.first_look import BOUND
from specmux_aggregator.discovery.directory import Directory
from specmux_aggregator.discovery.follower import Follower
from specmux_aggregator.discovery.index import Asked, DiscoveryIndex, Unmade
from specmux_aggregator.discovery.merge import merge
from specmux_aggregator.discovery.rendering import render
from specmux_aggregator.discovery.state import Knowledge
from specmux_aggregator.model.backend import BackendName
from specmux_aggregator.model.observation import Observation
from specmux_aggregator.model.snapshot import Snapshot
from specmux_aggregator.tasks import SingleFlight, log_failure

logger = logging.getLogger(__name__)

GATHER: Final = 0.02
"""Seconds in which changes of several backends are gathered."""

SETTLING: Final = 0.1
"""Seconds between looks whether all sources of backends have been heard."""


@dataclass(frozen=True, slots=True)
class _Running:
    follower: Follower
    task: asyncio.Task[None]


class DiscoveryWatch:
    """Follows the backends of each Snapshot it is told of. Lives on one event loop.

    ``grace``: seconds for which a list that cannot be confirmed is current.
    """

    def __init__(
        self,
        *,
        make: Callable[[Observation, Callable[[], None]], Follower],
        grace: float,
        is_settled: Callable[[], bool] = lambda: True,
    ) -> None:
        """``make`` builds a follower, which calls what it is given whenever it knows something else.
        ``is_settled``: it is known which backends there are."""
        self._make = make
        self._grace = grace
        self._is_settled = is_settled
        self._running: dict[BackendName, _Running] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._renderings: SingleFlight[tuple[DiscoveryIndex, Asked], None] = SingleFlight()
        self._flush: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_closed = False
        self._has_changed = False
        self._has_followed = False
        self._started = 0.0
        """Monotonic seconds of the first Snapshot that was followed."""
        self.index = DiscoveryIndex(Directory(), is_complete=False)
        self.generation = 0
        """Rises whenever another DiscoveryIndex is in force."""

    def follow(self, snapshot: Snapshot) -> None:
        """A Snapshot was published: start, stop and exchange followers, and tell them what changed."""
        if self._is_closed:
            return
        if not self._has_followed:
            self._has_followed, self._started = True, time.monotonic()
        observations = snapshot.observations
        gone: dict[BackendName, Follower] = {}
        for name, running in list(self._running.items()):
            observation = observations.get(name)
            if observation is None or observation.backend.asked != running.follower.observation.backend.asked:
                del self._running[name]
                self._end(running.task)
                gone[name] = running.follower
        for name, observation in observations.items():
            if name in self._running:
                self._running[name].follower.note(observation)
            else:
                follower = self._make(observation, self.changed)
                before = gone.get(name)
                if before is not None and before.observation.backend.address == observation.backend.address:
                    follower.inherit(before)
                task = asyncio.create_task(follower.run(), name=f"discovery {name}")
                log_failure(task, logger, f"backend {name}: its discovery is no longer followed")
                self._running[name] = _Running(follower, task)
        self.changed()

    def changed(self) -> None:
        """Something is known that was not: put a new DiscoveryIndex in force soon."""
        self._has_changed = True
        if self._flush is None and not self._is_closed:
            self._flush = asyncio.create_task(self._flush_soon())
            log_failure(self._flush, logger, "discovery could not be put together")

    def followers(self) -> list[Follower]:
        """By the names of their backends."""
        return [running.follower for _, running in sorted(self._running.items())]

    async def close(self) -> None:
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        tasks = {running.task for running in self._running.values()} | self._ending
        if self._flush is not None:
            tasks.add(self._flush)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._renderings.close()
        self._running.clear()

    async def _flush_soon(self) -> None:
        try:
            while self._has_changed:
                await asyncio.sleep(GATHER)
                self._has_changed = False
                await self._publish()
        finally:
            self._flush = None

    async def _publish(self) -> None:
        known = [running.follower.knowledge for running in self._running.values()]
        # A backend that is configured later must not take away what is answered already.
        has_all = self._has_followed and all(item.attempted for item in known)
        now = time.monotonic()
        is_late = self._has_followed and now >= self._started + BOUND
        is_complete = self.index.is_complete or is_late or (has_all and self._is_settled())
        last = self.index
        index = await asyncio.to_thread(self._merged, known, now, is_complete)
        directory = last.directory if index is None else index.directory
        # Nobody tells when a cluster turns out to have no backends.
        settling = now + SETTLING if has_all else self._started + BOUND
        self._wake_at(directory.changes_at if is_complete else settling, now)
        if index is None:
            return
        for asked in index.wanted(last.asked()):
            await render(index, asked)
        self.index = index
        self.generation += 1

    def _merged(self, known: list[Knowledge], now: float, is_complete: bool) -> DiscoveryIndex | None:
        """The answers of this moment; None where they are those of the index in force. Of thousands of
        group-versions this takes a while, so it is done in a thread."""
        directory = merge(known, now=now, grace=self._grace)
        is_blind = not directory.versions() and any(item.failure is not None for item in known)
        last = self.index
        if (directory, is_complete, is_blind) == (last.directory, last.is_complete, last.is_blind):
            return None
        return DiscoveryIndex(directory, is_complete=is_complete, is_blind=is_blind)

    async def make(self, unmade: Unmade) -> None:
        """Have the bytes of an answer at hand that were too many to be made at once."""
        await self._renderings.run((unmade.index, unmade.asked), lambda: render(unmade.index, unmade.asked))

    def _wake_at(self, moment: float | None, now: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if moment is not None:
            self._timer = asyncio.get_running_loop().call_later(moment - now, self.changed)

    def _end(self, task: asyncio.Task[None]) -> None:
        task.cancel()
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)
