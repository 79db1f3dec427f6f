"""What follows from a check of a backend: what is known now, and when to look again. Pure.

An apiserver that starts publishes less than it has, for seconds. So what is missing from a root is not gone:
it has to be missing for ``grace`` seconds, and never is while its cluster says that it exists.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from specmux_aggregator.config.settings import PollingSettings
from specmux_aggregator.model.failure import Failure
from specmux_aggregator.model.observation import Dialect, Observation
from specmux_aggregator.origins.outcome import BackendOffers, Outcome, Unchanged
from specmux_converters.group_versions import GroupVersion

OVER_HTTP: Final = frozenset({Dialect.V3, Dialect.V2})
"""Dialects of servers, which start; a directory holds what it holds."""


@dataclass(frozen=True, slots=True)
class BackendCheck:
    """When and how the last check of a backend ended. Monotonic and wall clock, seconds."""

    started: float = 0.0
    ended: float = 0.0
    succeeded_at: float | None = None
    failures: int = 0
    """Failed checks in a row."""
    next_delay: float = 0.0


def after(
    last: Observation, outcome: Outcome, *, now: float, monotonic: float = 0.0, grace: float = 0.0
) -> Observation:
    """What is known after a check; ``last`` itself when clients and operators would see no difference.

    ``now``: wall clock; ``monotonic``: of the same moment. ``grace``: seconds for which a group-version has
    to be missing until it is gone.
    """
    match outcome:
        case Failure():
            if last.attempted and last.failure is not None and last.failure.cause is outcome.cause:
                return last
            # Whoever fails may be starting: what is missing after that has to be missing anew.
            return replace(last, failure=outcome, attempted=True, missing={}, changed_at=now)
        case Unchanged():
            missing = _still_missing(last, last.missing, monotonic, grace)
            if last.attempted and last.failure is None and missing == last.missing:
                return last
            gone = last.missing.keys() - missing.keys()
            offers = {key: offer for key, offer in last.offers.items() if key not in gone}
            return replace(last, offers=offers, missing=missing, failure=None, attempted=True, changed_at=now)
        case BackendOffers(dialect, offers, _, notes, _, resources, servers):
            lacking = last.offers.keys() - offers.keys() if dialect in OVER_HTTP else ()
            since = {key: last.missing.get(key, monotonic) for key in lacking}
            missing = _still_missing(last, since, monotonic, grace)
            seen = replace(
                last,
                dialect=dialect,
                offers={**{key: last.offers[key] for key in missing}, **offers} if missing else offers,
                missing=missing,
                failure=None,
                attempted=True,
                notes=notes,
                resources=resources,
                servers=servers,
            )
            if seen == last:
                return last
            # What is read off the same documents is known again after a restart, and changed nothing.
            is_known = replace(seen, resources=last.resources) == last
            return seen if is_known else replace(seen, changed_at=now)


def _still_missing(
    last: Observation, since: Mapping[GroupVersion, float], monotonic: float, grace: float
) -> dict[GroupVersion, float]:
    """Those that are not gone yet. What it may not publish any more is gone at once."""
    backend = last.backend
    return {
        key: moment
        for key, moment in since.items()
        if backend.owns(key) and (monotonic - moment < grace or backend.is_known_to_have(key))
    }


def delay(polling: PollingSettings, outcome: Outcome, *, failures: int, random_unit: float) -> float:
    """Seconds until the next check: the interval, or a growing pause after failures; moved at random by the
    jitter.

    ``random_unit``: a number from 0 to 1. A backend's own Retry-After counts, up to the longest pause.
    """
    if isinstance(outcome, Failure):
        pause = min(polling.backoff_max, polling.backoff_min * 2.0 ** min(failures - 1, 30))
        if outcome.retry_after is not None:
            pause = min(polling.backoff_max, max(pause, outcome.retry_after))
    else:
        pause = polling.interval
    return pause * (1 + polling.jitter * (2 * random_unit - 1))
