"""What a check of a backend saw, and what follows from it: what is known now, and when to look again.
Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

from specmux_aggregator.build.built import Built
from specmux_aggregator.config.settings import Polling
from specmux_aggregator.model.backend import Dialect, Failure, Observation, Offer
from specmux_converters.group_versions import GroupVersion
from specmux_schemas.resources import Resources


@dataclass(frozen=True, slots=True)
class Seen:
    """All that the backend offers now."""

    dialect: Dialect
    offers: Mapping[GroupVersion, Offer]
    bodies: Mapping[GroupVersion, bytes] = field(default_factory=lambda: MappingProxyType({}))
    """gzip of the JSON form, of the documents that cannot be asked for by hash and are new to the caller."""
    notes: tuple[str, ...] = ()
    seconds: Mapping[GroupVersion, float] = field(default_factory=lambda: MappingProxyType({}))
    """How long the documents of CustomResourceDefinitions took that were built anew."""
    resources: Mapping[GroupVersion, Resources] = field(default_factory=lambda: MappingProxyType({}))
    """Of CustomResourceDefinitions, with the names that are in no document."""


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The backend was asked, and offers what it did the last time."""


Sighting = Seen | Unchanged | Failure


@dataclass(frozen=True, slots=True)
class Check:
    """When and how the last check of a backend ended. Monotonic and wall clock, seconds."""

    started: float = 0.0
    ended: float = 0.0
    succeeded_at: float | None = None
    failures: int = 0
    """Failed checks in a row."""
    next_delay: float = 0.0


def seen_of(
    dialect: Dialect,
    built: Iterable[Built],
    *,
    notes: tuple[str, ...] = (),
    seconds: Mapping[GroupVersion, float] | None = None,
    resources: Mapping[GroupVersion, Resources] | None = None,
) -> Seen:
    """A sighting made of documents that were built here."""
    documents = tuple(built)
    return Seen(
        dialect,
        {item.group_version: item.offer for item in documents},
        {item.group_version: item.gzip for item in documents if item.gzip is not None},
        notes,
        seconds or {},
        resources or {},
    )


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
