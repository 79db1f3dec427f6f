"""The status page: the service's backends and what it serves, as JSON for people and scripts. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from specmux_aggregator.aggregation.check_schedule import BackendCheck
from specmux_aggregator.documents.representations import Usage
from specmux_aggregator.model.backend import BackendName
from specmux_aggregator.model.failure import Failure
from specmux_aggregator.model.observation import Observation
from specmux_aggregator.model.server_union import difference_text
from specmux_aggregator.model.snapshot import PublishedCheck, Snapshot
from specmux_converters.group_versions import GroupVersion


@dataclass(frozen=True, slots=True)
class ServiceReport:
    """The state of the service itself, apart from its backends.

    ``config``: the last reading of the file. ``discovery`` and ``document_checks``: their own reports; None
    if off. ``unread``: documents about which no question is answered, and why. ``sources``: where backends
    come from besides the configuration; ``left_out``: rejected backends and why. ``openapi_v2``: its
    readers. ``is_settled``: whether the set of backends is known.
    """

    version: str
    config: Mapping[str, Any]
    sources: Mapping[str, Any]
    left_out: Iterable[str]
    is_settled: bool
    discovery: Mapping[str, Any] | None
    openapi_v2: Mapping[str, Any]
    document_checks: Mapping[str, Any] | None = None
    unread: Mapping[GroupVersion, str] = field(default_factory=dict)


def status_json(
    snapshot: Snapshot,
    checks: Iterable[tuple[Observation, BackendCheck]],
    usage: Usage,
    service: ServiceReport,
    *,
    now: float,
) -> bytes:
    """The body of ``/status``. ``now``: wall clock, seconds."""
    by_backend = {
        observation.backend.name: _backend(observation, check, now) for observation, check in checks
    }
    status = {
        "version": service.version,
        "generation": snapshot.generation,
        "ready": service.is_settled and is_ready(snapshot.observations.values()),
        "config": dict(service.config),
        "sources": {**service.sources, "leftOut": list(service.left_out)},
        "backends": by_backend,
        "groupVersions": _group_versions(snapshot),
        "conflicts": _conflicts(snapshot),
        "discovery": service.discovery,
        "documentChecks": service.document_checks,
        "openapiV2": dict(service.openapi_v2),
        "reader": {"refused": dict(service.unread)},
        "memory": _memory(usage),
    }
    return orjson.dumps(status, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def is_ready(observations: Iterable[Observation]) -> bool:
    """Whether every configured backend is fresh, was restored from disk, or has failed its first attempt."""
    return all(observation.attempted for observation in observations)


def list_waiting(observations: Iterable[Observation]) -> list[BackendName]:
    """The backends that readiness waits for."""
    return [observation.backend.name for observation in observations if not observation.attempted]


def _backend(observation: Observation, check: BackendCheck, now: float) -> dict[str, Any]:
    failure = observation.failure
    return {
        "kind": observation.backend.kind.value,
        "speaks": observation.dialect.value if observation.dialect else None,
        "state": _state(observation),
        "priority": observation.backend.priority,
        "groupVersions": len(observation.offers),
        "lastSuccessAgeSeconds": None
        if check.succeeded_at is None
        else round(max(0.0, now - check.succeeded_at), 3),
        "lastChangeAgeSeconds": None
        if observation.changed_at is None
        else round(max(0.0, now - observation.changed_at), 3),
        "failedChecks": check.failures,
        "nextCheckSeconds": round(check.next_delay, 3),
        "error": _error(failure),
        "notes": list(observation.notes),
        "servers": _servers(observation),
    }


def _servers(observation: Observation) -> dict[str, Any] | None:
    """The servers behind one address; None if there is only one."""
    if not observation.servers:
        return None
    return {
        "summary": difference_text(observation.servers),
        "servers": [
            {
                "name": server.name,
                "version": server.version,
                "groupVersions": len(server.offers),
                "state": "up" if server.failure is None else "failed",
                "error": _error(server.failure),
            }
            for server in observation.servers
        ],
    }


def _error(failure: Failure | None) -> dict[str, str] | None:
    return None if failure is None else {"cause": failure.cause.value, "detail": failure.detail}


def _state(observation: Observation) -> str:
    if not observation.attempted and observation.failure is None:
        return "pending"
    if observation.is_closed:
        return "closed"
    return "up" if observation.failure is None else "failed"


def _group_versions(snapshot: Snapshot) -> dict[str, Any]:
    return {
        key: {
            "owner": entry.owner,
            "hash": entry.offer.hash,
            "provenance": entry.offer.provenance.value,
            "bytes": entry.offer.size,
            "stale": snapshot.observations[entry.owner].failure is not None,
            "losses": entry.offer.losses,
            "lossExamples": list(entry.offer.loss_examples),
        }
        for key, entry in sorted(snapshot.entries.items())
    }


def document_checks_json(checks: Mapping[GroupVersion, PublishedCheck], *, waiting: int) -> dict[str, Any]:
    """Findings in published documents, if any."""
    found: dict[str, Any] = {}
    for group_version, check in sorted(checks.items()):
        if check.summary is None:
            found[group_version] = {"notChecked": check.reason}
        elif check.summary.errors or check.summary.warnings:
            found[group_version] = {
                "errors": check.summary.errors,
                "warnings": check.summary.warnings,
                "examples": list(check.summary.examples),
            }
    return {"checked": len(checks), "waiting": waiting, "findings": found}


def _conflicts(snapshot: Snapshot) -> list[dict[str, Any]]:
    return [
        {
            "groupVersion": conflict.group_version,
            "winner": conflict.winner,
            "losers": list(conflict.losers),
        }
        for conflict in snapshot.conflicts
    ]


def _memory(usage: Usage) -> dict[str, int]:
    return {
        "bytes": usage.bytes,
        "pinnedBytes": usage.pinned_bytes,
        "documents": usage.documents,
        "forms": usage.forms,
        "evictions": usage.evictions,
    }
