"""Discovery in ``/status``, as JSON trees. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from specmux_aggregator.api_discovery.backend_knowledge import Freshness, Knowledge
from specmux_aggregator.api_discovery.directory import Directory, ListedVersion
from specmux_aggregator.model.snapshot import Snapshot
from specmux_converters.group_versions import GroupVersion, split


def discovery_report(
    directory: Directory,
    known: Iterable[tuple[Knowledge, float | None]],
    snapshot: Snapshot,
    *,
    now: float,
    wall: float,
) -> dict[str, Any]:
    """``known``: per backend, with the wall clock of its last report. ``now``: monotonic."""
    return {
        "backends": {item.backend.name: _backend(item, told_at, wall) for item, told_at in known},
        "groupVersions": {item.group_version: _version(item, now) for item in directory.versions()},
        "conflicts": [
            {"groupVersion": item.group_version, "winner": item.winner, "losers": list(item.losers)}
            for item in directory.conflicts
        ],
        "withoutOpenAPI": without_openapi(directory, snapshot),
        "withoutDiscovery": without_discovery(directory, snapshot),
    }


def without_openapi(directory: Directory, snapshot: Snapshot) -> list[GroupVersion]:
    """Group-versions in discovery without a document: ``kubectl explain`` fails for them."""
    return sorted(
        item.group_version for item in directory.versions() if item.group_version not in snapshot.entries
    )


def without_discovery(directory: Directory, snapshot: Snapshot) -> list[GroupVersion]:
    """Group-versions with a document that discovery does not list."""
    listed = {item.group_version for item in directory.versions()}
    return sorted(key for key in snapshot.entries if split(key) is not None and key not in listed)


def _backend(known: Knowledge, told_at: float | None, wall: float) -> dict[str, Any]:
    failure = known.failure
    return {
        "form": known.form.value if known.form else None,
        "state": "pending" if not known.attempted else "failed" if failure else "up",
        "groupVersions": len(known.listings),
        "lastSuccessAgeSeconds": None if told_at is None else round(max(0.0, wall - told_at), 3),
        "error": None if failure is None else {"cause": failure.cause.value, "detail": failure.detail},
        "notes": list(known.notes),
    }


def _version(version: ListedVersion, now: float) -> dict[str, Any]:
    lapse = version.lapse
    return {
        "owner": version.owner,
        "freshness": version.freshness.value,
        "resources": len(version.resources),
        "unconfirmedSeconds": None if lapse is None else round(max(0.0, now - lapse.since), 3),
        "error": None
        if lapse is None
        else {"cause": lapse.failure.cause.value, "detail": lapse.failure.detail},
    }


def stale(directory: Directory) -> int:
    """Number of group-versions marked as stale, which clients drop."""
    return sum(item.freshness is Freshness.STALE for item in directory.versions())
