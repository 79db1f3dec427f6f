"""What follows from a check of a backend: what is known now, and when to look again. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace

from specmux_aggregator.config.settings import Polling
from specmux_aggregator.model.failure import Failure
from specmux_aggregator.model.observation import Observation
from specmux_aggregator.origins.sighting import Seen, Sighting, Unchanged


@dataclass(frozen=True, slots=True)
class Check:
    """When and how the last check of a backend ended. Monotonic and wall clock, seconds."""

    started: float = 0.0
    ended: float = 0.0
    succeeded_at: float | None = None
    failures: int = 0
    """Failed checks in a row."""
    next_delay: float = 0.0


def after(last: Observation, sighting: Sighting, *, now: float) -> Observation:
    """What is known after a check; ``last`` itself when clients and operators would see no difference."""
    match sighting:
        case Failure():
            if last.attempted and last.failure is not None and last.failure.cause is sighting.cause:
                return last
            return replace(last, failure=sighting, attempted=True, changed_at=now)
        case Unchanged():
            if last.attempted and last.failure is None:
                return last
            return replace(last, failure=None, attempted=True, changed_at=now)
        case Seen(dialect, offers, _, notes, _, resources):
            seen = replace(
                last,
                dialect=dialect,
                offers=offers,
                failure=None,
                attempted=True,
                notes=notes,
                resources=resources,
            )
            return last if seen == last else replace(seen, changed_at=now)


def delay(polling: Polling, sighting: Sighting, *, failures: int, random_unit: float) -> float:
    """Seconds until the next check: the interval, or a growing pause after failures; moved at random by the
    jitter.

    ``random_unit``: a number from 0 to 1. A backend's own Retry-After counts, up to the longest pause.
    """
    if isinstance(sighting, Failure):
        pause = min(polling.backoff_max, polling.backoff_min * 2.0 ** min(failures - 1, 30))
        if sighting.retry_after is not None:
            pause = min(polling.backoff_max, max(pause, sighting.retry_after))
    else:
        pause = polling.interval
    return pause * (1 + polling.jitter * (2 * random_unit - 1))
