"""Merge the discovery of several servers behind one address, as the mixed version proxy does (KEP-4020).
Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from specmux_aggregator.api_discovery.backend_knowledge import (
    BackendListings,
    DiscoverySource,
    UnconfirmedResources,
)
from specmux_aggregator.model.server_union import git_version, release_of
from specmux_converters.group_versions import GroupVersion
from specmux_converters.resources import Resources


def digest_of_told(told: BackendListings) -> str:
    """A digest that distinguishes servers by their discovery: group-versions, resources and version."""
    lines = [f"{key}={told.listings[key]!r}" for key in sorted(told.listings)]
    version = told.version or b""
    return hashlib.sha256("\n".join(lines).encode() + version).hexdigest()


def united(servers: Iterable[BackendListings]) -> BackendListings:
    """The union: each group-version's list comes from the highest-ranked server that confirms it. Independent
    of the order of the servers, of which there is at least one."""
    listings: dict[GroupVersion, Resources | UnconfirmedResources] = {}
    ranked = sorted(servers, key=_rank)
    highest = ranked[-1]
    for told in ranked:
        for key, listing in told.listings.items():
            is_confirmed_already = key in listings and not isinstance(listings[key], UnconfirmedResources)
            if not (isinstance(listing, UnconfirmedResources) and is_confirmed_already):
                listings[key] = listing
    forms = {told.form for told in ranked}
    form = DiscoverySource.LEGACY if DiscoverySource.LEGACY in forms else highest.form
    notes = tuple(dict.fromkeys(note for told in ranked for note in told.notes))
    peers_only = frozenset(listings.keys() - highest.listings.keys())
    return BackendListings(form, listings, highest.version, notes, peers_only)


def _rank(told: BackendListings) -> tuple[tuple[int, ...], int, str]:
    return release_of(git_version(told.version)), len(told.listings), digest_of_told(told)
