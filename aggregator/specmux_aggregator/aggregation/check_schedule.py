"""The consequences of checking a backend: what is known now, and when to check again. Pure.

A starting apiserver publishes less than it has for some seconds. So a group-version missing from a root is
kept for ``grace`` seconds, and for as long as its cluster says that it exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from specmux_aggregator.backend_sources.outcome import BackendOffers, Outcome, UnchangedOffers
from specmux_aggregator.config.settings import PollingSettings
from specmux_aggregator.model.backend import BackendKind
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.observation import Observation
from specmux_converters.group_versions import GroupVersion

OVER_HTTP: Final = frozenset({BackendKind.V3, BackendKind.V2})
"""Dialects of servers, which take time to start; a directory is always complete."""


@dataclass(frozen=True, slots=True)
class BackendCheck:
    """When and how the last check of a backend ended. Seconds, on the monotonic and the wall clock."""

    started: float = 0.0
    ended: float = 0.0
    succeeded_at: float | None = None
    failures: int = 0
    """Consecutive failed checks."""
    next_delay: float = 0.0


def after(
    last: Observation, outcome: Outcome, *, now: float, monotonic: float = 0.0, grace: float = 0.0
) -> Observation:
    """The observation after a check; ``last`` itself if clients and operators would see no difference.

    ``now``: wall clock; ``monotonic``: the same moment. ``grace``: seconds for which a group-version must be
    missing before it is removed.
    """
    match outcome:
        case Failure():
            # Without a worker nothing was learnt: it is no first look.
            attempted = last.attempted or outcome.cause is not Cause.NO_WORKER
            is_known = last.failure is not None and last.failure.cause is outcome.cause
            if is_known and attempted is last.attempted:
                return last
            return replace(last, failure=outcome, attempted=attempted, changed_at=now)
        case UnchangedOffers():
            missing = _still_missing(last, _missing_since(last, monotonic), monotonic, grace)
            if last.attempted and last.failure is None and missing == last.missing:
                return last
            gone = last.missing.keys() - missing.keys()
            offers = {key: offer for key, offer in last.offers.items() if key not in gone}
            return replace(last, offers=offers, missing=missing, failure=None, attempted=True, changed_at=now)
        case BackendOffers(dialect, offers, _, notes, _, resources, servers, is_partial):
            lacking = last.offers.keys() - offers.keys() if dialect in OVER_HTTP else ()
            before = _missing_since(last, monotonic)
            since = {key: before.get(key, monotonic) for key in lacking}
            missing = _still_missing(last, since, monotonic, grace)
            seen = replace(
                last,
                dialect=dialect,
                offers={**{key: last.offers[key] for key in missing}, **offers} if missing else offers,
                missing=missing,
                failure=None,
                attempted=last.attempted or not is_partial,
                notes=notes,
                servers=servers,
            )
            if seen != last:
                return replace(seen, resources=resources, changed_at=now)
            # After a restart the same documents are known again; that is no change.
            return last if resources == last.resources else replace(last, resources=resources)


def _missing_since(last: Observation, monotonic: float) -> Mapping[GroupVersion, float]:
    """The monotonic time since which each is missing: anew after a failure, since a server that failed may
    have restarted."""
    return last.missing if last.failure is None else dict.fromkeys(last.missing, monotonic)


def _still_missing(
    last: Observation, since: Mapping[GroupVersion, float], monotonic: float, grace: float
) -> dict[GroupVersion, float]:
    """The group-versions that are missing but kept, with the time since. Those no longer allowed are removed
    at once."""
    backend = last.backend
    return {
        key: moment
        for key, moment in since.items()
        if backend.owns(key) and (monotonic - moment < grace or backend.is_known_to_have(key))
    }


SCAN_REST: Final = 60.0
"""Pause after a look at an unchanged directory, as a multiple of its duration: thousands of files cost a stat
each."""

SCAN_REST_MAX: Final = 10.0
"""Seconds after which an edit is seen at the latest."""


def scan_rest(outcome: Outcome, seconds: float) -> float:
    """Least seconds until a directory is looked at again after a check that took ``seconds``."""
    return min(SCAN_REST_MAX, SCAN_REST * seconds) if isinstance(outcome, UnchangedOffers) else 0.0


def delay(polling: PollingSettings, outcome: Outcome, *, failures: int, random_unit: float) -> float:
    """Seconds until the next check: the interval, or a growing pause after failures, changed randomly by the
    jitter.

    ``random_unit``: a number from 0 to 1. A backend's Retry-After is respected up to the longest pause.
    """
    if isinstance(outcome, BackendOffers) and outcome.is_partial:
        return 0.0
    if isinstance(outcome, Failure):
        pause = min(polling.backoff_max, polling.backoff_min * 2.0 ** min(failures - 1, 30))
        if outcome.retry_after is not None:
            pause = min(polling.backoff_max, max(pause, outcome.retry_after))
    else:
        pause = polling.interval
    return pause * (1 + polling.jitter * (2 * random_unit - 1))
