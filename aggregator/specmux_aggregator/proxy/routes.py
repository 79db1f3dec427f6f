"""Which backend answers a request itself, given a Snapshot. Pure."""

from __future__ import annotations

from dataclasses import replace

from specmux_aggregator.aggregation.ownership import precedence
from specmux_aggregator.model.backend import Backend
from specmux_aggregator.model.failure import OUT_OF_REACH
from specmux_aggregator.model.observation import Observation
from specmux_aggregator.model.snapshot import Snapshot
from specmux_cache.access.server_access import Credentials
from specmux_converters.group_versions import GroupVersion


def swagger_candidates(snapshot: Snapshot) -> tuple[Backend, ...]:
    """Who may have a Swagger 2.0 document, in the order in which they are asked: by precedence, but a
    cluster's apiserver, which has the document of all, before the extensions that were found there; and those
    that could not be reached at their last check after all others."""

    def order(item: Observation) -> tuple[object, ...]:
        is_part = item.backend.found is not None and not item.backend.is_fallback
        return _is_lost(item), is_part, precedence(item)

    served = [item for item in snapshot.observations.values() if item.backend.url]
    return tuple(item.backend for item in sorted(served, key=order))


def owner_of(snapshot: Snapshot, group_version: GroupVersion) -> Backend | None:
    """Who answers requests for resources of a group-version; None: nobody.

    What no backend over HTTP owns is the cluster's own, where one is watched: its apiserver serves the
    resources of CustomResourceDefinitions, and knows of a group-version before its document is published.
    """
    entry = snapshot.entries.get(group_version)
    if entry is None:
        return apiserver_in(snapshot)
    backend = snapshot.observations[entry.owner].backend
    if backend.url:
        return backend
    # A directory has no resources, whatever cluster is watched beside it.
    return None if backend.directory is not None else apiserver_in(snapshot)


def without_credentials(backend: Backend) -> Backend:
    """The same backend with nothing that speaks for us: a client's request carries its own."""
    tls = replace(backend.tls, cert_file=None, key_file=None, cert_data=None, key_data=None)
    return replace(backend, tls=tls, credentials=Credentials())


def apiserver_in(snapshot: Snapshot) -> Backend | None:
    """That of the cluster that is watched; None: there is none."""
    for item in sorted(snapshot.observations.values(), key=precedence):
        if item.backend.is_fallback and item.backend.url:
            return item.backend
    return None


def _is_lost(observation: Observation) -> bool:
    return observation.failure is not None and observation.failure.cause in OUT_OF_REACH
