"""Merge the observations of all backends into the Snapshot that clients see. Pure.

The owner of a contested group-version follows from the configuration, never from the order in which backends
answered. Configured backends precede those found in a cluster, and the cluster's apiserver stands in where no
other backend has the document.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

import orjson

from specmux_aggregator.model.backend import Backend, BackendName
from specmux_aggregator.model.observation import Hash, Observation
from specmux_aggregator.model.snapshot import DocumentKey, OwnershipConflict, Snapshot, SnapshotEntry
from specmux_converters.group_versions import GroupVersion

ROOT_OWNER: Final = BackendName("")
"""The owner of the root, which no backend owns; no backend has an empty name."""


def merge(observations: Mapping[BackendName, Observation], *, generation: int) -> Snapshot:
    """The Snapshot in which every group-version has one owner."""
    entries: dict[GroupVersion, SnapshotEntry] = {}
    losers: dict[GroupVersion, list[BackendName]] = {}
    for observation in sorted(observations.values(), key=precedence):
        backend = observation.backend
        for group_version, offer in observation.offers.items():
            if not backend.owns(group_version):
                continue
            if group_version in entries and (backend.is_fallback or observation.is_closed):
                continue
            if group_version in entries:
                losers.setdefault(group_version, []).append(backend.name)
            else:
                key = DocumentKey(backend.name, group_version, offer.hash)
                entries[group_version] = SnapshotEntry(group_version, backend.name, offer, key)
    conflicts = tuple(
        OwnershipConflict(group_version, entries[group_version].owner, tuple(names))
        for group_version, names in sorted(losers.items())
    )
    root_json = discovery_json(entries.values())
    return Snapshot(
        generation=generation,
        entries=MappingProxyType(entries),
        root=root_key(root_json),
        root_json=root_json,
        observations=MappingProxyType(dict(observations)),
        conflicts=conflicts,
    )


def precedence(observation: Observation) -> tuple[bool, tuple[bool, bool, int, str]]:
    """Sort key that puts the winner of a contested group-version first, and a backend that denies access
    last."""
    return (observation.is_closed, rank(observation.backend))


def rank(backend: Backend) -> tuple[bool, bool, int, str]:
    """Rank of a backend among those that contest a group-version; the lowest wins."""
    return (backend.is_fallback, backend.found is not None, -backend.priority, backend.name)


def discovery_json(entries: Iterable[SnapshotEntry]) -> bytes:
    """The body of ``/openapi/v3``; URLs are built from key and hash, never copied from a backend."""
    paths = {
        entry.group_version: {
            "serverRelativeURL": f"/openapi/v3/{entry.group_version}?hash={entry.offer.hash}",
        }
        for entry in entries
    }
    return orjson.dumps({"paths": paths}, option=orjson.OPT_SORT_KEYS)


def root_key(root_json: bytes) -> DocumentKey:
    digest = hashlib.sha256(root_json).hexdigest().upper()
    return DocumentKey(ROOT_OWNER, GroupVersion(""), Hash(digest))
