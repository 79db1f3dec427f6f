"""The loop that watches one backend, and what is known of it when a check has changed nothing.

Every backend has a loop of its own: a slow or dead one holds up nobody. A failed check keeps the last good
offers.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from specmux_aggregator.aggregation.checks import Check, after, delay
from specmux_aggregator.config.settings import Polling
from specmux_aggregator.model.backend import Backend
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.observation import Observation
from specmux_aggregator.origins.origin import Origin
from specmux_aggregator.origins.outcome import Outcome, Seen
from specmux_aggregator.upstream.credential_files import credential_files, until_changed
from specmux_converters.group_versions import GroupVersion

logger = logging.getLogger(__name__)

MIN_GAP = 0.1
"""Seconds between the starts of two checks of one backend, whatever asks for them."""

NOTES_LOGGED = 20
"""Complaints of one check that are logged one by one."""

Publish = Callable[[Observation, Mapping[GroupVersion, bytes]], Awaitable[None]]
"""Takes a changed observation and the bytes that came with it; returns when clients can see it."""


class Refresher:
    """Watches one backend until it is cancelled."""

    def __init__(
        self,
        origin: Origin,
        observation: Observation,
        *,
        polling: Polling,
        publish: Publish,
        observed: Callable[[Observation, Outcome, float], None],
        random_unit: Callable[[], float] = random.random,
    ) -> None:
        self.origin = origin
        self.observation = observation
        self.check = Check()
        self._polling = polling
        self._publish = publish
        self._observed = observed
        self._random_unit = random_unit
        self._poke = asyncio.Event()
        self._waiting: set[asyncio.Future[None]] = set()

    @property
    def vouched_until(self) -> float | None:
        """Monotonic seconds until which the offers count as the backend's own; None: they have to be checked.

        A backend that is failing cannot be asked any better, so what is known of it counts.
        """
        if self.observation.failure is not None or not self.observation.attempted:
            return time.monotonic() + self._polling.revalidate_interval
        until = self.check.started + self._polling.revalidate_interval
        return until if until > time.monotonic() else None

    async def run(self) -> None:
        """Check, publish what changed, wait; for ever."""
        try:
            while True:
                await self._check_once()
                await self._pause()
        finally:
            self._release()
            await self.origin.close()

    def poke(self) -> None:
        """Check at once: there is news of the backend. Calls that come close together are one."""
        self._poke.set()

    def stand(self, backend: Backend) -> None:
        """Go on with another priority, or with what a cluster says of it now; it is asked as before."""
        if backend != self.observation.backend:
            self.observation = replace(self.observation, backend=backend)

    async def revalidate(self, *, timeout: float, newer_than: float | None = None) -> None:
        """Return when the backend has been checked once more, or after ``timeout`` seconds.

        Any number of callers share one check, and one that is recent enough serves as well: one that vouches
        for the offers, or, given ``newer_than`` (monotonic seconds), one that started after it.
        """
        if self._is_recent(newer_than):
            return
        checked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(checked)
        self._poke.set()
        try:
            async with asyncio.timeout(timeout):
                await checked
        except TimeoutError:
            return
        finally:
            self._waiting.discard(checked)

    def _is_recent(self, newer_than: float | None) -> bool:
        if newer_than is None or self.observation.failure is not None:
            return self.vouched_until is not None
        return self.check.started > newer_than

    async def _check_once(self) -> None:
        started = time.monotonic()
        self._poke.clear()
        waiting, self._waiting = self._waiting, set()
        try:
            outcome = await self.origin.observe(self.observation)
        except Exception as error:
            logger.exception("backend %s: check failed with a bug", self.observation.backend.name)
            outcome = Failure(Cause.INTERNAL, type(error).__name__)
        try:
            observation = after(
                self.observation,
                outcome,
                now=time.time(),
                monotonic=time.monotonic(),
                grace=self._polling.removal_grace,
            )
            failures = self.check.failures + 1 if isinstance(outcome, Failure) else 0
            self.check = Check(
                started=started,
                ended=time.monotonic(),
                succeeded_at=self.check.succeeded_at if failures else time.time(),
                failures=failures,
                next_delay=delay(self._polling, outcome, failures=failures, random_unit=self._random_unit()),
            )
            self._observed(observation, outcome, self.check.ended - started)
            bodies = outcome.bodies if isinstance(outcome, Seen) else {}
            if observation is not self.observation or bodies:
                _log_change(self.observation, observation)
                self.observation = observation
                await self._publish(observation, bodies)
        finally:
            for checked in waiting:
                if not checked.done():
                    checked.set_result(None)

    async def _pause(self) -> None:
        try:
            async with asyncio.timeout(self.check.next_delay):
                await self._news()
        except TimeoutError:
            return
        await asyncio.sleep(self.check.started + MIN_GAP - time.monotonic())

    async def _news(self) -> None:
        """Return when there is a reason to look again: somebody says so, or what was refused is exchanged."""
        failure = self.observation.failure
        files = credential_files(self.observation.backend)
        if failure is None or failure.cause is not Cause.CREDENTIALS or not files:
            await self._poke.wait()
            return
        reasons = {asyncio.create_task(work) for work in (self._poke.wait(), until_changed(files))}
        try:
            await asyncio.wait(reasons, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for reason in reasons:
                reason.cancel()
            await asyncio.gather(*reasons, return_exceptions=True)

    def _release(self) -> None:
        for checked in self._waiting:
            if not checked.done():
                checked.set_result(None)


def _log_change(last: Observation, now: Observation) -> None:
    name = now.backend.name
    new = [note for note in now.notes if note not in last.notes]
    for note in new[:NOTES_LOGGED]:
        logger.warning("backend %s: %s", name, note)
    if len(new) > NOTES_LOGGED:
        logger.warning("backend %s: and %d more; /status lists them", name, len(new) - NOTES_LOGGED)
    if now.failure is not None:
        if last.failure is None or last.failure.cause is not now.failure.cause:
            logger.warning(
                "backend %s: %s: %s; %d group-versions kept",
                name,
                now.failure.cause,
                now.failure.detail,
                len(now.offers),
            )
        return
    if last.failure is not None or not last.attempted or last.dialect is not now.dialect:
        logger.info("backend %s: up, speaks %s, %d group-versions", name, now.dialect, len(now.offers))
    elif now.missing.keys() - last.missing.keys():
        missing = sorted(now.missing)
        logger.warning(
            "backend %s: %d of %d group-versions are missing from its root, kept until that lasts: %s",
            name,
            len(missing),
            len(now.offers),
            ", ".join(missing[:5]),
        )
    elif last.offers != now.offers:
        changed = {key for key in {*last.offers, *now.offers} if last.offers.get(key) != now.offers.get(key)}
        logger.info("backend %s: %d of %d group-versions changed", name, len(changed), len(now.offers))
