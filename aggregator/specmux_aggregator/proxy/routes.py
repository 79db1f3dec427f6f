"""The backend that answers a request, given a Snapshot. Pure."""

from __future__ import annotations

from dataclasses import replace

from specmux_aggregator.aggregation.ownership import precedence
from specmux_aggregator.model.backend import Backend
from specmux_aggregator.model.snapshot import Snapshot
from specmux_cache.access.server_access import Credentials
from specmux_converters.group_versions import GroupVersion


def swagger_candidates(snapshot: Snapshot) -> tuple[Backend, ...]:
    """Backends that may have a Swagger 2.0 document, in the order to try, whether or not they can be reached.

    A cluster's apiserver has the merged document: the extension servers found there have parts of it, and are
    asked only where no apiserver is.
    """
    served = [item for item in snapshot.observations.values() if item.backend.url]
    has_whole = any(item.backend.is_fallback for item in served)
    return tuple(
        item.backend
        for item in sorted(served, key=precedence)
        if item.backend.found is None or item.backend.is_fallback or not has_whole
    )


def owner_of(snapshot: Snapshot, group_version: GroupVersion) -> Backend | None:
    """The backend for resources of a group-version; None if there is none.

    Where no backend over HTTP owns it, a watched cluster's apiserver does: it serves custom resources, and
    knows a group-version before its document is published.
    """
    entry = snapshot.entries.get(group_version)
    if entry is None:
        return apiserver_in(snapshot)
    backend = snapshot.observations[entry.owner].backend
    if backend.url:
        return backend
    # A directory has no resources, whether or not a cluster is watched as well.
    return None if backend.directory or backend.kubernetes else apiserver_in(snapshot)


def without_credentials(backend: Backend) -> Backend:
    """The same backend without this service's credentials: a client's request carries its own."""
    tls = replace(backend.tls, cert_file=None, key_file=None, cert_data=None, key_data=None)
    return replace(backend, tls=tls, credentials=Credentials())


def apiserver_in(snapshot: Snapshot) -> Backend | None:
    """The apiserver of the watched cluster; None if no cluster is watched."""
    for item in sorted(snapshot.observations.values(), key=precedence):
        if item.backend.is_fallback and item.backend.url:
            return item.backend
    return None
