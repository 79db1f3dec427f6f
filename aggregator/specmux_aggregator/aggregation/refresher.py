"""Watch one backend, and keep its last good offers when a check fails.

Every backend has its own loops, one for its documents and one for what follows them, so a slow or dead
backend delays no other.
"""

# Theory of operation
#
# ``Loop`` calls ``_check_once`` at the pace that the last outcome suggests, and at once when poked: by a
# watch, a changed file, or a client that was told to expect news. A check asks the origin what it offers,
# given the last observation; ``after`` is the pure function that makes the next observation of both, and
# keeps the last offers where the check failed.
#
# A change is published with its bytes before ``check`` says that the check happened. Requests that wait
# in ``revalidate`` therefore see what was found. They share one check: whoever comes while one is running
# waits for the next, since the running one may have looked too early.
#
# Exceptions end here. An origin returns its failures as values; what it raises all the same is a bug or
# an exhausted machine, and becomes a Failure like any other, so that one backend's bug costs that backend
# only.
#
# What must never happen: a check that removes offers because it failed; a check that overlaps another of
# the same backend; a caller of ``revalidate`` that waits beyond its timeout; a wait on another backend.

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Protocol

from specmux_aggregator.aggregation.check_schedule import BackendCheck, after, delay, scan_rest
from specmux_aggregator.aggregation.loop import Loop, Pace
from specmux_aggregator.backend_sources.origin import Origin
from specmux_aggregator.backend_sources.outcome import BackendOffers, Outcome
from specmux_aggregator.config.settings import PollingSettings
from specmux_aggregator.http.trace_context import current_parent, trace_request
from specmux_aggregator.model.backend import Backend
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.observation import Observation
from specmux_aggregator.model.server_union import difference_text
from specmux_aggregator.upstream.credentials import credential_files, until_changed
from specmux_converters.counted_nouns import counted, list_first
from specmux_converters.group_versions import GroupVersion

logger = logging.getLogger(__name__)

NOTES_LOGGED = 20
"""Complaints of one check that are logged individually."""


class DocumentsFollower(Protocol):
    """Keeps something else of a backend up to date, after its documents."""

    def note(self, observation: Observation) -> None:
        """Take note of the backend as published now."""
        ...

    async def run(self) -> None:
        """Run until cancelled."""
        ...


Publish = Callable[[Observation, Mapping[GroupVersion, bytes]], Awaitable[None]]
"""Publishes a changed observation with its bytes; returns when clients can see it."""


class Refresher:
    """Watches one backend until cancelled."""

    def __init__(
        self,
        origin: Origin,
        observation: Observation,
        *,
        polling: PollingSettings,
        publish: Publish,
        observed: Callable[[Observation, Outcome, float], None],
        follower: DocumentsFollower | None = None,
        pace: Pace | None = None,
        random_unit: Callable[[], float] = random.random,
        clock: Callable[[], float] = lambda: time.monotonic(),
    ) -> None:
        """``pace``: shared by all first checks."""
        self.origin = origin
        self.observation = observation
        # What the state has was good when it was stored.
        restored_at = observation.changed_at if observation.attempted else None
        self.check = BackendCheck(succeeded_at=restored_at)
        self._polling = polling
        self._publish = publish
        self._observed = observed
        self._random_unit = random_unit
        self._clock = clock
        self._follower = follower
        self._loop = Loop(self._check_once, pace=pace, reason=self._news)
        self._waiting: set[asyncio.Future[None]] = set()
        self._trace_parent: str | None = None
        """Of the latest request that waits for a check."""

    @property
    def vouched_until(self) -> float | None:
        """Monotonic seconds until which the offers count as confirmed; None: they have to be checked.

        A failing backend cannot be asked again with better results, so its known offers count.
        """
        if self.observation.failure is not None or not self.observation.attempted:
            return self._clock() + self._polling.revalidate_interval
        until = self.check.started + self._polling.revalidate_interval
        return until if until > self._clock() else None

    async def run(self) -> None:
        """Check, publish changes and wait, forever."""
        try:
            async with asyncio.TaskGroup() as loops:
                loops.create_task(self._loop.run())
                if self._follower is not None:
                    loops.create_task(self._follower.run())
        finally:
            _let_go(self._waiting)
            await self.origin.close()

    def poke(self) -> None:
        """Check at once: there is news of the backend. Calls in quick succession cause one check."""
        self._loop.poke()

    def stir(self) -> None:
        """Check a failing backend sooner: a client wants something of it."""
        if self._clock() - self.check.started > self._polling.revalidate_interval:
            self.poke()

    def stand(self, backend: Backend) -> None:
        """Continue with another priority, or with new facts of the cluster; requests to the backend stay the
        same."""
        if backend != self.observation.backend:
            self.observation = replace(self.observation, backend=backend)
            self._tell_follower()

    async def revalidate(self, *, timeout: float, newer_than: float | None = None) -> bool:
        """Return when the backend has been checked once more, or after ``timeout`` seconds: False.

        All callers share one check. A recent one is sufficient: one that confirmed the offers or, given
        ``newer_than`` (monotonic seconds), one that started after it.
        """
        if self._is_recent(newer_than):
            return True
        checked: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(checked)
        self._trace_parent = current_parent()
        self._loop.poke()
        try:
            async with asyncio.timeout(timeout):
                await checked
        except TimeoutError:
            return False
        finally:
            self._waiting.discard(checked)
        return True

    def _is_recent(self, newer_than: float | None) -> bool:
        if newer_than is None or self.observation.failure is not None:
            return self.vouched_until is not None
        return self.check.started > newer_than

    async def _check_once(self) -> float:
        """Check; returns the seconds until the next check."""
        waiting, self._waiting = self._waiting, set()
        parent, self._trace_parent = self._trace_parent, None
        try:
            started = self._clock()
            with contextlib.nullcontext() if parent is None else trace_request((parent,)):
                outcome = await self._outcome()
            await self._take(started, outcome)
        finally:
            _let_go(waiting)
        return self.check.next_delay

    async def _outcome(self) -> Outcome:
        try:
            return await self.origin.observe(self.observation)
        except OSError as error:  # no descriptors left, or a disk failure: nothing to repair here
            return Failure(Cause.UNREADABLE, error.strerror or type(error).__name__)
        except MemoryError:  # the process has a limit
            return Failure(Cause.INTERNAL, "out of memory")
        except Exception as error:
            logger.exception("backend %s: check failed with a bug", self.observation.backend.name)
            return Failure(Cause.INTERNAL, type(error).__name__)

    async def _take(self, started: float, outcome: Outcome) -> None:
        """Apply the outcome of a check that began at ``started``."""
        observation = after(
            self.observation,
            outcome,
            now=time.time(),
            monotonic=self._clock(),
            grace=self._polling.removal_grace,
        )
        failures = self.check.failures + 1 if isinstance(outcome, Failure) else 0
        ended = self._clock()
        pause = delay(self._polling, outcome, failures=failures, random_unit=self._random_unit())
        if observation.backend.directory is not None:
            pause = max(pause, scan_rest(outcome, ended - started))
        check = BackendCheck(
            started=started,
            ended=ended,
            succeeded_at=self.check.succeeded_at if failures else time.time(),
            failures=failures,
            next_delay=pause,
        )
        self._observed(observation, outcome, check.ended - started)
        bodies = outcome.bodies if isinstance(outcome, BackendOffers) else {}
        if observation is not self.observation or bodies:
            _log_change(self.observation, observation)
            self.observation = observation
            await self._publish(observation, bodies)
            self._tell_follower()
        # Only now does it confirm what clients can see.
        self.check = check

    def _tell_follower(self) -> None:
        if self._follower is not None:
            self._follower.note(self.observation)

    async def _news(self, poked: asyncio.Event) -> None:
        """Return when there is a reason to check again: a poke, or new credentials after a refusal."""
        failure = self.observation.failure
        files = credential_files(self.observation.backend)
        if failure is None or failure.cause is not Cause.CREDENTIALS or not files:
            await poked.wait()
            return
        reasons = {asyncio.create_task(work) for work in (poked.wait(), until_changed(files))}
        try:
            await asyncio.wait(reasons, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for reason in reasons:
                reason.cancel()
            await asyncio.gather(*reasons, return_exceptions=True)


def _let_go(waiting: Iterable[asyncio.Future[None]]) -> None:
    for checked in waiting:
        if not checked.done():
            checked.set_result(None)


def _servers_text(observation: Observation) -> str:
    return difference_text(observation.servers) if observation.servers else "1 server"


def _log_change(last: Observation, now: Observation) -> None:
    name = now.backend.name
    new = [note for note in now.notes if note not in last.notes]
    # A note of one word is a key of the root that the backend may not publish (upstream/client.py).
    keys = [note for note in new if " " not in note]
    if keys:
        logger.info(
            "backend %s: also lists %s, which are not its own and left out; nothing to do, unless its"
            " group_versions or its APIService should name them",
            name,
            list_first(keys, NOTES_LOGGED),
        )
    new = [note for note in new if " " in note]
    for note in new[:NOTES_LOGGED]:
        logger.warning("backend %s: OpenAPI spec: %s", name, note)
    if len(new) > NOTES_LOGGED:
        logger.warning(
            "backend %s: OpenAPI spec: and %d more notes; /status lists them", name, len(new) - NOTES_LOGGED
        )
    told = _servers_text(now)
    if told != _servers_text(last):
        logger.info("backend %s: %s", name, told)
    if now.failure is not None:
        if last.failure is None or last.failure.cause is not now.failure.cause:
            logger.warning(
                "backend %s: %s: %s; OpenAPI specs of %s kept",
                name,
                now.failure.cause,
                now.failure.detail,
                counted(len(now.offers), "group-version"),
            )
        return
    if not now.attempted:
        return  # the first build is under way
    if last.failure is not None or not last.attempted or last.dialect is not now.dialect:
        logger.info(
            "backend %s: up, speaks %s, OpenAPI specs of %s",
            name,
            now.dialect,
            counted(len(now.offers), "group-version"),
        )
    elif now.missing.keys() - last.missing.keys():
        missing = sorted(now.missing)
        logger.warning(
            "backend %s: OpenAPI specs of %d of %s are missing from its root, kept until that lasts: %s",
            name,
            len(missing),
            counted(len(now.offers), "group-version"),
            ", ".join(missing[:5]),
        )
    else:
        added, gone = now.offers.keys() - last.offers.keys(), last.offers.keys() - now.offers.keys()
        changed = [key for key in last.offers.keys() - gone if last.offers[key] != now.offers[key]]
        counts = ((added, "added"), (changed, "changed"), (gone, "removed"))
        if said := ", ".join(f"{len(keys)} {word}" for keys, word in counts if keys):
            logger.info(
                "backend %s: OpenAPI specs: %s; %s now",
                name,
                said,
                counted(len(now.offers), "group-version"),
            )
