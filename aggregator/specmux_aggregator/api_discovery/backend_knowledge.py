"""Knowledge of one backend's discovery, before and after an attempt. Pure.

An unconfirmed list is kept. It counts as current for a grace period, since clients drop stale lists:
``kubectl get jobs`` would not know jobs, and namespaces would hang in Terminating (k/k#119662).
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import field, replace
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from specmux_aggregator.model.backend import Backend
from specmux_aggregator.model.failure import Cause, Failure
from specmux_converters.group_versions import GroupVersion
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.resources import Resources


class DiscoverySource(StrEnum):
    """How a backend's discovery was obtained."""

    AGGREGATED = "aggregated"
    LEGACY = "legacy"
    SYNTHESISED = "synthesised"
    """Derived from its documents, since it has no discovery."""


class Freshness(StrEnum):
    CURRENT = "Current"
    STALE = "Stale"


@dataclass(frozen=True, slots=True)
class Lapse:
    """Since when (monotonic seconds) a list is unconfirmed, and why."""

    since: float
    failure: Failure


@dataclass(frozen=True, slots=True)
class Listing:
    """The last known resources of one group-version."""

    resources: Resources
    lapse: Lapse | None = None
    is_known: bool = True
    """False while they were never available; ``resources`` is then empty."""

    def freshness(self, now: float, grace: float) -> Freshness:
        until = self.current_until(grace)
        return Freshness.CURRENT if until is None or now < until else Freshness.STALE

    def current_until(self, grace: float) -> float | None:
        """Monotonic seconds; None: until something to the contrary is known."""
        if self.lapse is None:
            return None
        return self.lapse.since + (grace if self.is_known else 0.0)


@dataclass(frozen=True, slots=True)
class UnconfirmedResources:
    """A group-version that exists, whose resources are unavailable now."""

    failure: Failure
    resources: Resources = ()
    """Resources that its server listed nevertheless."""


@dataclass(frozen=True, slots=True)
class BackendListings:
    """Everything that a backend listed."""

    form: DiscoverySource
    listings: Mapping[GroupVersion, Resources | UnconfirmedResources]
    version: bytes | None = None
    """The JSON object of ``/version``."""
    notes: tuple[str, ...] = ()
    peers_only: frozenset[GroupVersion] = frozenset()
    """Group-versions of ``listings`` that the highest-ranked of several servers lacks."""


Outcome = BackendListings | Failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Knowledge:
    """The last known discovery of one backend, and how the last attempt ended."""

    backend: Backend
    form: DiscoverySource | None = None
    listings: Mapping[GroupVersion, Listing] = field(default_factory=lambda: MappingProxyType({}))
    version: bytes | None = None
    failure: Failure | None = None
    attempted: bool = False
    notes: tuple[str, ...] = ()
    peers_only: frozenset[GroupVersion] = frozenset()
    """See ``BackendListings``."""


UNLISTED: Final = Failure(Cause.NOT_FOUND, "no longer listed")
"""Why a list is kept that its backend no longer shows: it may be starting."""


def after(last: Knowledge, outcome: Outcome, *, now: float, grace: float = 0.0) -> Knowledge:
    """The knowledge after an attempt; ``last`` itself if there is no visible difference. ``now``: monotonic.
    ``grace``: seconds for which a group-version must be unlisted before it is removed."""
    match outcome:
        case Failure():
            if last.attempted and last.failure is not None and last.failure.cause is outcome.cause:
                return last
            known = {key: _lapse(listing, outcome, now) for key, listing in last.listings.items()}
            # The configuration says that these exist, so clients should learn of them.
            for key in last.backend.group_versions or ():
                known.setdefault(key, Listing((), Lapse(now, outcome), is_known=False))
            return replace(last, listings=known, failure=outcome, attempted=True)
        case BackendListings(form, listings, version, notes, peers_only):
            return _unless_equal(
                last,
                Knowledge(
                    backend=last.backend,
                    form=form,
                    listings={
                        **_keep_unlisted(last, listings.keys(), now, grace if form is last.form else 0.0),
                        **{
                            key: _listing(last.listings.get(key), told, now) for key, told in listings.items()
                        },
                    },
                    version=version,
                    attempted=True,
                    notes=notes,
                    peers_only=peers_only,
                ),
            )


def _keep_unlisted(
    last: Knowledge, listed: AbstractSet[GroupVersion], now: float, grace: float
) -> dict[GroupVersion, Listing]:
    """Group-versions that were listed before and are not removed yet."""
    kept: dict[GroupVersion, Listing] = {}
    for key, listing in last.listings.items():
        if key in listed or not listing.is_known or not last.backend.owns(key):
            continue
        lapse = listing.lapse
        # The backend may have been away before; the grace period begins now.
        since = lapse.since if lapse is not None and lapse.failure == UNLISTED else now
        if now - since < grace or last.backend.is_known_to_have(key):
            kept[key] = replace(listing, lapse=Lapse(since, UNLISTED))
    return kept


def _listing(last: Listing | None, told: Resources | UnconfirmedResources, now: float) -> Listing:
    if not isinstance(told, UnconfirmedResources):
        return Listing(told)
    if last is None or not last.is_known:
        last = Listing(told.resources, last.lapse if last else None, is_known=bool(told.resources))
    return _lapse(last, told.failure, now)


def _lapse(listing: Listing, failure: Failure, now: float) -> Listing:
    if listing.lapse is not None and listing.lapse.failure.cause is failure.cause:
        return listing
    since = now if listing.lapse is None else listing.lapse.since
    return replace(listing, lapse=Lapse(since, failure))


def _unless_equal(last: Knowledge, now: Knowledge) -> Knowledge:
    return last if last == now else now
