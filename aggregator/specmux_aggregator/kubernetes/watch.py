"""List and watch one resource forever: when a watch ends, the next one resumes where it stopped.

It starts with a list. Each event and bookmark advances the version from which a watch resumes; only if that
is impossible (410, or unreadable events) is everything listed again. Objects missing from that list are
removed once a second list agrees. Known objects stay known while the apiserver is unreachable.

A starting apiserver refuses everybody for a while (403 before its roles are loaded) and may lack the resource
(404). So a refusal of what was listed before counts as a failure until it persists.

A watch counts as working once it has lasted for a while. Watches that do not are retried at growing
intervals, however they end.

A connection can die silently behind a tunnel or a NAT: a watch that is silent for longer than two bookmarks,
or while the apiserver fails otherwise (``doubt``), is ended and opened again.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final
from urllib.parse import urlencode

from specmux_aggregator.kubernetes.api_client import ApiClient
from specmux_aggregator.kubernetes.listing import PageSize, read_list
from specmux_aggregator.kubernetes.watch_events import (
    GONE,
    Keep,
    WatchedObjects,
    after,
    confirm_list,
    differs,
    whole,
)
from specmux_aggregator.model.failure import Cause, Failure

logger = logging.getLogger(__name__)

SILENT_BOOKMARKS: Final = 2.25
"""Missing bookmarks that are tolerated."""

_IN_DOUBT: Final = Failure(Cause.TIMEOUT, "said nothing while the apiserver could not be reached")

PATIENCE: Final = 3
"""Consecutive refusals after which the version is no longer trusted: after a restore of etcd it may lie in
the future."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """Durations in the life of a watch, in seconds."""

    shortest_life: float = 300.0
    longest_life: float = 600.0
    """Requested lifetime of a watch, at most; randomized as in client-go."""
    grace: float = 30.0
    """After that, until it is ended here."""
    bookmarks: float = 60.0
    """Approximate interval of bookmarks (apiserver, storage/cacher, bookmarkFrequency)."""
    standing: float = 5.0
    """Least duration of a watch that counts as working."""
    backoff_min: float = 0.5
    backoff_max: float = 10.0
    silent_max: float = 60.0
    """Longest period in which watches may end at once without an event; then the resource is listed again."""
    ask_again: float = 60.0
    """Longest pause before a forbidden or absent resource is requested again."""
    refused_for: float = 300.0
    """Period of nothing but refusals, for a resource that was listed before, until they count."""
    settled: float = 2.0
    """Between a list that lacks known objects and the one that must confirm it."""


class WatchPhase(StrEnum):
    """The state of a watch."""

    PENDING = "pending"
    SYNCED = "synced"
    FORBIDDEN = "forbidden"
    ABSENT = "absent"
    FAILING = "failing"

    @property
    def is_refusal(self) -> bool:
        """The cluster denies or lacks the resource: continue without it."""
        return self in (WatchPhase.FORBIDDEN, WatchPhase.ABSENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchState:
    """The state of a watch, for people and metrics."""

    phase: WatchPhase
    failure: Failure | None
    objects: int
    """Number of known objects; also while it fails."""
    version: str | None
    heard_at: float | None
    """Monotonic seconds of the last list, event or bookmark."""
    lists: int
    restarts: int
    """Watches opened after the first one."""

    @property
    def is_synced(self) -> bool:
        return self.phase is WatchPhase.SYNCED


class Watch:
    """Follows one resource until it is cancelled.

    ``on_change`` gets what is held of all objects by name, "namespace/name" where they have one: after the
    first list, even of nothing, and whenever they have changed. ``on_failure`` is called when
    ``state.failure`` or ``state.phase`` is another one. ``keep`` makes of an object what is held of it,
    in a thread.
    ``selector``: of labels, where not all objects are wanted.
    """

    def __init__(
        self,
        client: ApiClient,
        path: str,
        *,
        on_change: Callable[[Mapping[str, Any]], None],
        on_failure: Callable[[], object] = lambda: None,
        selector: str | None = None,
        keep: Keep = whole,
        timing: Timing = Timing(),
        random_unit: Callable[[], float] = random.random,
    ) -> None:
        self._client = client
        self._path = path
        self._selector = {} if selector is None else {"labelSelector": selector}
        self._on_change = on_change
        self._on_failure = on_failure
        self._keep = keep
        self._timing = timing
        self._random_unit = random_unit
        self._page_size = PageSize()
        self._held: WatchedObjects | None = None
        self._must_list = True
        self._failure: Failure | None = None
        self._told: tuple[Failure, bool] | None = None
        """The failure last passed to ``on_failure``, and whether it counts as a refusal."""
        self._attempts = 0
        """Consecutive watches and lists without result."""
        self._refusals = 0
        """Consecutive answers that were not a watch."""
        self._is_listed_again = False
        """An expired version was answered with a list, without result yet."""
        self._refused_since: float | None = None
        """Monotonic seconds of the first in a row of refusals (403, 404)."""
        self._was_shown = False
        """Whether the resource was listed before, so that a refusal may be temporary."""
        self._lacked: frozenset[str] = frozenset()
        """Known objects that the last list lacked."""
        self._heard_at: float | None = None
        self._has_bookmarks = False
        """Whether the apiserver sends bookmarks, so that silence is meaningful."""
        self._running: asyncio.Timeout | None = None
        """The deadline of the open watch."""
        self._lists = 0
        self._watches = 0

    def expect(self) -> None:
        """An earlier run could list the resource, so a refusal now may be temporary."""
        self._was_shown = True

    def doubt(self, *, lists: bool = False) -> None:
        """Others cannot reach the apiserver any more: check that this watch still can. ``lists``: by a list,
        since their credentials are refused, and an open watch outlives those that opened it."""
        self._must_list |= lists
        if self._running is not None:
            self._running.reschedule(asyncio.get_running_loop().time())

    @property
    def state(self) -> WatchState:
        """The current state."""
        held = self._held
        return WatchState(
            phase=_phase(self._failure, held, is_refused=self._is_refused),
            failure=self._failure,
            objects=0 if held is None else len(held.objects),
            version=None if held is None else held.version,
            heard_at=self._heard_at,
            lists=self._lists,
            restarts=max(0, self._watches - 1),
        )

    async def run(self) -> None:
        """List, watch and wait, forever."""
        while True:
            if self._must_list:
                pause = await self._list()
            else:
                pause = await self._watch()
            await asyncio.sleep(pause)

    async def _list(self) -> float:
        """List once; returns seconds to wait before the next step."""
        held = await read_list(
            self._client,
            self._path,
            selector=self._selector,
            before=self._held,
            keep=self._keep,
            size=self._page_size,
        )
        if isinstance(held, Failure):
            return self._note_failure(held, stood=False)
        self._lists += 1
        self._was_shown = True
        if self._held is None:
            logger.info("watch of %s: %d objects", self._path, len(held.objects))
        held, self._lacked = confirm_list(held, self._held, self._lacked)
        self._must_list = bool(self._lacked)
        self._hold(held)
        return self._timing.settled if self._must_list else 0.0

    async def _watch(self) -> float:
        """Follow one watch to its end; returns seconds to wait before the next step."""
        timing = self._timing
        assert self._held is not None
        span = timing.longest_life - timing.shortest_life
        life = max(1, round(timing.shortest_life + span * self._random_unit()))
        query = {
            **self._selector,
            "watch": "1",
            "allowWatchBookmarks": "true",
            "resourceVersion": self._held.version,
            "timeoutSeconds": str(life),
        }
        loop = asyncio.get_running_loop()
        stands: asyncio.TimerHandle | None = None
        opened_at: float | None = None

        def opened() -> None:
            nonlocal stands, opened_at
            opened_at = time.monotonic()
            self._watches += 1
            stands = loop.call_later(timing.standing, self._note_proof)

        try:
            async with asyncio.timeout(None) as self._running:
                failure = await self._client.events(
                    f"{self._path}?{urlencode(query)}",
                    lasting=life + timing.grace,
                    silence=SILENT_BOOKMARKS * timing.bookmarks,
                    opened=opened,
                    take=self._take,
                )
        except TimeoutError:
            if self._must_list:
                return 0.0
            failure, opened_at = _IN_DOUBT, None
        finally:
            self._running = None
            if stands is not None:
                stands.cancel()
        if opened_at is not None and failure is not None and failure.cause is Cause.TIMEOUT:
            # Silence. A server without bookmarks sends nothing while nothing changes.
            failure, opened_at = (failure, None) if self._has_bookmarks else (None, opened_at)
        stood = opened_at is not None and time.monotonic() - opened_at >= timing.standing
        if failure is not None:
            return self._note_failure(failure, stood=stood)
        self._note_proof()
        if not stood:
            if self._heard_at is not None and time.monotonic() - self._heard_at >= timing.silent_max:
                # A server that answers like that may know nothing of the objects.
                self._must_list = True
            return self._backoff()
        self._attempts = 0
        return 0.0

    def _take(self, events: list[Mapping[str, Any]]) -> Failure | None:
        assert self._held is not None
        self._has_bookmarks = self._has_bookmarks or any(each.get("type") == "BOOKMARK" for each in events)
        held, failure = after(self._held, events, keep=self._keep)
        if held.version != self._held.version:
            self._note_proof()
        self._hold(held)
        return failure

    def _hold(self, held: WatchedObjects) -> None:
        before, self._held = self._held, held
        self._heard_at = time.monotonic()
        if differs(before, held):
            self._on_change(held.objects)

    def _note_failure(self, failure: Failure, *, stood: bool) -> float:
        """Seconds to wait after a failure."""
        self._refusals = self._refusals + 1 if failure.status is not None else 0
        if failure.status not in (403, 404):
            self._refused_since = None
        elif self._refused_since is None:
            self._refused_since = time.monotonic()
        cannot_resume = failure.status in (400, 403, 404, GONE) or failure.cause in (
            Cause.BAD_BODY,
            Cause.TOO_LARGE,
        )
        if cannot_resume or self._refusals >= PATIENCE:
            self._must_list = True
        if stood or (failure.status == GONE and not self._is_listed_again):
            # Connections end and versions expire: normal for a watch, and a failure only if it persists.
            self._attempts = 0 if stood else max(1, self._attempts)
            self._is_listed_again = not stood
            return 0.0
        if self._failure is None or (failure.cause, failure.status) != (
            self._failure.cause,
            self._failure.status,
        ):
            kept = 0 if self._held is None else len(self._held.objects)
            logger.warning(
                "watch of %s: %s: %s; %d objects kept", self._path, failure.cause, failure.detail, kept
            )
        told = (failure, self._is_refused)
        if told != self._told:
            self._failure, self._told = failure, told
            self._on_failure()
        longest = self._timing.ask_again if self._is_refused else self._timing.backoff_max
        return max(self._backoff(longest), failure.retry_after or 0.0)

    @property
    def _is_refused(self) -> bool:
        """Whether the cluster persistently denies the resource."""
        if self._refused_since is None:
            return False
        return not self._was_shown or time.monotonic() - self._refused_since >= self._timing.refused_for

    def _backoff(self, longest: float | None = None) -> float:
        self._attempts += 1
        longest = self._timing.backoff_max if longest is None else longest
        wait = min(longest, self._timing.backoff_min * 2.0 ** min(self._attempts - 1, 20))
        return wait * (0.5 + 0.5 * self._random_unit())

    def _note_proof(self) -> None:
        """Note that a watch works: it has lasted, sent something, or ended properly."""
        self._refusals = 0
        self._refused_since = None
        self._is_listed_again = False
        if self._failure is not None:
            self._failure = self._told = None
            self._on_failure()
            logger.info("watch of %s: up again", self._path)


def _phase(failure: Failure | None, held: WatchedObjects | None, *, is_refused: bool) -> WatchPhase:
    if failure is None:
        return WatchPhase.PENDING if held is None else WatchPhase.SYNCED
    if not is_refused:
        return WatchPhase.FAILING
    return WatchPhase.FORBIDDEN if failure.status == 403 else WatchPhase.ABSENT
