"""Small values of discovery for tests."""

from __future__ import annotations

from typing import Any

from specmux_aggregator.api_discovery.backend_knowledge import (
    BackendListings,
    DiscoverySource,
    Knowledge,
    UnconfirmedResources,
    after,
)
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_aggregator.model.failure import Cause, Failure
from specmux_converters.group_versions import GroupVersion
from specmux_converters.resources import APIResource, GroupVersionKind, Resources

DOWN = Failure(Cause.REFUSED, "connection refused")


def resource(name: str = "things", kind: str = "Thing", **fields: Any) -> APIResource:
    made = {"is_namespaced": True, "verbs": ("get", "list"), "singular": kind.lower(), **fields}
    return APIResource(name=name, kind=GroupVersionKind("g", "v1", kind), **made)


def told(
    *group_versions: str, form: DiscoverySource = DiscoverySource.AGGREGATED, **fields: Any
) -> BackendListings:
    return BackendListings(form, {GroupVersion(key): (resource(),) for key in group_versions}, **fields)


def told_but(group_version: str, failure: Failure = DOWN, resources: Resources = ()) -> BackendListings:
    return BackendListings(
        DiscoverySource.AGGREGATED, {GroupVersion(group_version): UnconfirmedResources(failure, resources)}
    )


def knowledge(name: str, *group_versions: str, version: bytes | None = None, **fields: Any) -> Knowledge:
    backend = Backend(name=BackendName(name), **fields)
    return after(Knowledge(backend=backend), told(*group_versions, version=version), now=0.0)
