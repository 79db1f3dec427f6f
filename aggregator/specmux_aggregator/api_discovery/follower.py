"""Keep the knowledge of one backend's discovery current.

A backend with discovery is asked at an interval, and at once when its documents change; one without is
derived again when its documents change. Only this loop waits for either.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from specmux_aggregator.aggregation.check_schedule import delay
from specmux_aggregator.aggregation.loop import Loop, Pace
from specmux_aggregator.api_discovery.backend_knowledge import (
    BackendListings,
    DiscoverySource,
    Knowledge,
    Outcome,
    UnconfirmedResources,
    after,
)
from specmux_aggregator.api_discovery.client import SILENT, BackendDiscovery
from specmux_aggregator.api_discovery.synthesis import Synthesis
from specmux_aggregator.backend_sources.outcome import UnchangedOffers
from specmux_aggregator.config.settings import PollingSettings
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.observation import Observation
from specmux_converters.counted_nouns import counted
from specmux_converters.group_versions import split

logger = logging.getLogger(__name__)

FIRST_WAIT: Final = 1.0
"""Seconds for which the first request of one among many waits for the backend's first check."""

INCOMPLETE: Final = Failure(Cause.NOT_FOUND, "documents are published of group-versions that are not listed")


class DiscoveryFollower:
    """Follows one backend until cancelled. ``asked`` is None for a backend without discovery."""

    def __init__(
        self,
        observation: Observation,
        asked: BackendDiscovery | None,
        synthesis: Synthesis,
        *,
        polling: PollingSettings,
        changed: Callable[[], None],
        pace: Pace | None = None,
        random_unit: Callable[[], float] = random.random,
    ) -> None:
        """``polling``: interval and pauses between requests. ``changed`` is called whenever ``knowledge``
        changes. ``pace``: shared by all first checks."""
        self.observation = observation
        self.knowledge = Knowledge(backend=observation.backend)
        self.told_at: float | None = None
        """Wall clock in seconds of the end of the last successful attempt."""
        self._asked = asked
        self._synthesis = synthesis
        self._polling = polling
        self._changed = changed
        self._random_unit = random_unit
        self._pace = pace
        self._loop = Loop(self._look, pace=pace)
        self._is_heard = asyncio.Event()
        self._troubles = 0
        self._missed = 0
        """Consecutive attempts without discovery."""

    def inherit(self, before: DiscoveryFollower) -> None:
        """Continue from what another follower knew of the same backend under other credentials."""
        self.knowledge = replace(before.knowledge, backend=self.observation.backend)
        self.told_at = before.told_at

    def note(self, observation: Observation) -> None:
        """Note the published state of the backend; check at once if its documents or health changed."""
        last, self.observation = self.observation, observation
        is_moved = last.backend != observation.backend
        if is_moved:
            self.knowledge = replace(self.knowledge, backend=observation.backend)
        if (
            # Its permitted group-versions may have changed; a backend with discovery has reported all of them
            # anyway.
            (is_moved and self._asked is None)
            or last.offers != observation.offers
            or last.resources != observation.resources
            or (last.failure is None) != (observation.failure is None)
            or last.attempted != observation.attempted
        ):
            self._loop.poke()
        if observation.attempted:
            self._is_heard.set()

    async def run(self) -> None:
        """Check, report changes and wait, forever."""
        if self._pace is not None and self._pace.is_crowded:
            # After its documents, which come first, over the same connection.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(FIRST_WAIT):
                    await self._is_heard.wait()
        await self._loop.run()

    async def _look(self) -> float | None:
        """Check; returns seconds until the next check, or None to wait for a change."""
        outcome = await self._outcome()
        if outcome is not None:
            self._take(outcome)
        return self._wait(outcome)

    async def _outcome(self) -> Outcome | None:
        try:
            if self._asked is None:
                return await self._synthesis.tell(self.observation)
            outcome = await self._asked.ask() or await self._without_discovery(self._asked)
            if isinstance(outcome, Failure):
                await self._recall(outcome)
            return outcome
        except Exception as error:
            logger.exception("backend %s: discovery failed with a bug", self.observation.backend.name)
            return Failure(Cause.INTERNAL, type(error).__name__)

    async def _without_discovery(self, asked: BackendDiscovery) -> Outcome | None:
        self._missed += 1
        if self.knowledge.form in (DiscoverySource.AGGREGATED, DiscoverySource.LEGACY) and self._missed < 2:
            # As with documents: a recent group-version that is missing is taken for a restart at first.
            return Failure(Cause.NOT_FOUND, "neither /api nor /apis is there any more")
        outcome = await self._synthesis.tell(self.observation)
        return replace(outcome, version=asked.version) if isinstance(outcome, BackendListings) else outcome

    async def _recall(self, failure: Failure) -> None:
        """Use documents of an earlier run for a backend that does not answer now."""
        observation = self.observation
        is_dead = failure.cause in SILENT or observation.failure is not None or not observation.attempted
        if is_dead and self.knowledge.form is None and self.observation.offers:
            told = await self._synthesis.tell(self.observation, unreachable=failure)
            if isinstance(told, BackendListings):
                self.knowledge = after(self.knowledge, told, now=time.monotonic())

    def _take(self, outcome: Outcome) -> None:
        last = self.knowledge
        if isinstance(outcome, BackendListings) and outcome.form is not DiscoverySource.SYNTHESISED:
            self._missed = 0
        grace = 0.0 if self._asked is None else self._polling.removal_grace
        self.knowledge = after(last, outcome, now=time.monotonic(), grace=grace)
        if not isinstance(outcome, Failure):
            self.told_at = time.time()
        if self.knowledge is not last:
            _log_change(last, self.knowledge)
            self._changed()

    def _wait(self, outcome: Outcome | None) -> float | None:
        """Seconds until the next check; None to wait for a change."""
        trouble = self._trouble(outcome)
        if trouble is None:
            self._troubles = 0
            if self._asked is None:
                return None
        else:
            self._troubles += 1
        pause = delay(
            self._polling,
            trouble or UnchangedOffers(),
            failures=self._troubles,
            random_unit=self._random_unit(),
        )
        return min(pause, self._polling.interval * (1 + self._polling.jitter))

    def _trouble(self, outcome: Outcome | None) -> Failure | None:
        """The failure that calls for an earlier check."""
        match outcome:
            case None:
                return None
            case Failure():
                return outcome
            case BackendListings():
                failures = (
                    told.failure
                    for told in outcome.listings.values()
                    if isinstance(told, UnconfirmedResources)
                )
                return next(failures, INCOMPLETE if self._lacks(outcome) else None)

    def _lacks(self, told: BackendListings) -> bool:
        """Whether the backend publishes documents of group-versions that it did not list: a new one may
        appear there first."""
        owns = self.observation.backend.owns
        return any(
            key not in told.listings and split(key) is not None and owns(key)
            for key in self.observation.offers
        )


def _log_change(last: Knowledge, now: Knowledge) -> None:
    name = now.backend.name
    if now.failure is not None:
        logger.warning(
            "backend %s: discovery: %s: %s; %s kept",
            name,
            now.failure.cause,
            now.failure.detail,
            counted(len(now.listings), "group-version"),
        )
    elif last.failure is not None or last.form is not now.form:
        form = "read off its documents" if now.form is DiscoverySource.SYNTHESISED else now.form
        logger.info("backend %s: discovery: %s, %s", name, form, counted(len(now.listings), "group-version"))
    elif last.listings.keys() != now.listings.keys():
        logger.info("backend %s: discovery: %s now", name, counted(len(now.listings), "group-version"))
    lapsed = {key for key, listing in now.listings.items() if listing.lapse is not None}
    before = {key for key, listing in last.listings.items() if listing.lapse is not None}
    if now.failure is None and lapsed - before:
        logger.warning(
            "backend %s: discovery: %s cannot be confirmed: %s",
            name,
            counted(len(lapsed), "group-version"),
            ", ".join(sorted(lapsed)[:5]),
        )
