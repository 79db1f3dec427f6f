"""Merge what is known of every backend's discovery into one Directory. Pure.

The owner of a group-version follows the rule for documents (ownership.py): precedence among those that may
and do offer it. A backend that cannot list its resources wins only if no other can.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field, replace
from typing import Final

from specmux_aggregator.aggregation.ownership import rank
from specmux_aggregator.api_discovery.backend_knowledge import Knowledge, Listing
from specmux_aggregator.api_discovery.directory import Directory, Group, ListedVersion
from specmux_aggregator.model.backend import Backend, BackendKind, BackendName
from specmux_aggregator.model.snapshot import OwnershipConflict
from specmux_converters.group_versions import GroupVersion, split
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.order import BUILT_IN_GROUPS, DEFAULT_GROUP, version_rank


@dataclass(slots=True)
class _Offers:
    """The backends that offer one group-version, in order of precedence."""

    by: list[tuple[Backend, Listing]] = field(default_factory=list)
    peers_only: set[BackendName] = field(default_factory=set)
    """Backends whose highest-ranked server lacks it."""

    def choose(self) -> tuple[Backend, Listing]:
        return next((item for item in self.by if item[1].is_known), self.by[0])


def merge(known: Iterable[Knowledge], *, now: float, grace: float) -> Directory:
    """The Directory at ``now`` (monotonic seconds). ``grace``: seconds for which an unconfirmed list stays
    current."""
    ordered = sorted(known, key=lambda item: rank(item.backend))
    chosen: list[tuple[Backend, ListedVersion]] = []
    conflicts: list[OwnershipConflict] = []
    ends: list[float] = []
    for group_version, offered in _offers(ordered).items():
        backend, listing = offered.choose()
        version = _version(group_version, backend.name, listing, now, grace)
        if backend.name in offered.peers_only:
            version = replace(version, is_peers_only=True)
        chosen.append((backend, version))
        until = listing.current_until(grace)
        if until is not None and until > now:
            ends.append(until)
        losers = tuple(
            other.name for other, _ in offered.by if other.name != backend.name and not other.is_fallback
        )
        # The apiserver, standing in, is no contender.
        if losers and not backend.is_fallback:
            conflicts.append(OwnershipConflict(group_version, backend.name, losers))
    groups = _groups(chosen)
    core = [group for group in groups if not group.name]
    return Directory(
        core=core[0] if core else None,
        groups=tuple(group for group in groups if group.name),
        conflicts=tuple(sorted(conflicts, key=lambda conflict: conflict.group_version)),
        version=_server_version(ordered),
        awaits_version=any(_may_tell_version(item) and item.failure is not None for item in ordered),
        changes_at=min(ends, default=None),
    )


def _may_tell_version(item: Knowledge) -> bool:
    return item.backend.is_fallback or (item.backend.found is None and bool(item.backend.url))


def _server_version(ordered: Iterable[Knowledge]) -> bytes | None:
    """The answer to /version: of the cluster's apiserver, else of a configured backend.

    Never of an extension apiserver, which has its own version: Helm and kubectl take it for the cluster's.
    """
    told = [item for item in ordered if item.version is not None]
    apiservers = [item for item in told if item.backend.is_fallback]
    configured = [item for item in told if item.backend.found is None]
    return next((item.version for item in (*apiservers, *configured)), None)


def _offers(known: Iterable[Knowledge]) -> dict[GroupVersion, _Offers]:
    offers: dict[GroupVersion, _Offers] = {}
    for item in known:
        for group_version, listing in item.listings.items():
            if item.backend.owns(group_version) and split(group_version) is not None:
                offered = offers.setdefault(group_version, _Offers())
                offered.by.append((item.backend, listing))
                if group_version in item.peers_only:
                    offered.peers_only.add(item.backend.name)
    return offers


def _version(
    group_version: GroupVersion, owner: BackendName, listing: Listing, now: float, grace: float
) -> ListedVersion:
    parts = split(group_version)
    assert parts is not None
    return ListedVersion(
        group_version=group_version,
        name=parts[1],
        owner=owner,
        resources=listing.resources,
        freshness=listing.freshness(now, grace),
        lapse=listing.lapse,
        is_known=listing.is_known,
    )


def _groups(chosen: Iterable[tuple[Backend, ListedVersion]]) -> list[Group]:
    members: dict[str, list[tuple[Backend, ListedVersion]]] = {}
    for backend, version in chosen:
        parts = split(version.group_version)
        assert parts is not None
        members.setdefault(parts[0], []).append((backend, version))
    priorities = {
        name: max(group_priority(backend, version.group_version) for backend, version in items)
        for name, items in members.items()
    }
    return [
        Group(name, tuple(version for _, version in sorted(members[name], key=_version_order)))
        for name in sorted(members, key=lambda name: (-priorities[name], name))
    ]


def _version_order(member: tuple[Backend, ListedVersion]) -> tuple[object, ...]:
    backend, version = member
    return (-version_priority(backend, version.group_version), version_rank(version.name))


DEFAULT_VERSION: Final = 15
CRD_VERSION: Final = 100
"""The same for every version of a CustomResourceDefinition, so that the comparison of versions decides."""


def group_priority(backend: Backend, group_version: GroupVersion) -> int:
    """The highest comes first."""
    stated, _ = backend.priorities_of(group_version)
    if stated is not None:
        return stated
    parts = split(group_version)
    return BUILT_IN_GROUPS.get(parts[0], DEFAULT_GROUP) if parts else DEFAULT_GROUP


def version_priority(backend: Backend, group_version: GroupVersion) -> int:
    """The highest comes first within its group."""
    _, stated = backend.priorities_of(group_version)
    if stated is not None:
        return stated
    return CRD_VERSION if backend.kind is BackendKind.CRDS else DEFAULT_VERSION
