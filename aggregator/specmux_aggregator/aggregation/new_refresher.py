"""The refresher of a backend: the origin that it checks, and how often."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Final

from specmux_aggregator.aggregation.loop import Pace
from specmux_aggregator.aggregation.refresher import DocumentsFollower, Publish, Refresher
from specmux_aggregator.backend_sources.directory import FolderOrigin
from specmux_aggregator.backend_sources.files import DocumentFiles, Folder
from specmux_aggregator.backend_sources.origin import Origin
from specmux_aggregator.backend_sources.outcome import Outcome
from specmux_aggregator.config.settings import LimitSettings, PollingSettings, Settings
from specmux_aggregator.folders import is_layout
from specmux_aggregator.model.backend import Backend, BackendKind
from specmux_aggregator.model.observation import Observation
from specmux_aggregator.upstream.body_budget import BodyBudget
from specmux_aggregator.upstream.credentials import Identities
from specmux_aggregator.workers.worker import Worker

if TYPE_CHECKING:  # imported where a backend is of that kind
    from specmux_aggregator.backend_sources.manifests import Manifests
    from specmux_aggregator.backend_sources.servers import ServerSet

DIRECTORY_INTERVAL: Final = 1.0
"""The longest interval in seconds between checks of a directory: they cost a stat per file, and someone waits
to see an edit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshers:
    """Makes the refreshers of all backends."""

    builder: Worker
    identities: Identities
    bodies: BodyBudget
    settings: Settings
    publish: Publish
    observed: Callable[[Observation, Outcome, float], None]
    pace: Pace

    def refresher_of(
        self,
        observation: Observation,
        *,
        manifests: Manifests | None,
        follow: Callable[[Observation, ServerSet | None], DocumentsFollower] | None,
    ) -> Refresher:
        """A new refresher; the caller runs it. ``manifests``: those of a watched cluster. ``follow``: creates
        what follows the documents and asks the same servers."""
        backend, polling, limits = observation.backend, self.settings.polling, self.settings.limits
        servers = self._servers_of(backend) if backend.url or backend.urls else None
        if backend.kind.is_directory:
            polling = replace(polling, interval=min(polling.interval, DIRECTORY_INTERVAL))
        origin = origin_of(
            backend,
            self.builder,
            manifests=manifests,
            servers=servers,
            polling=polling,
            limits=limits,
        )
        return Refresher(
            origin,
            observation,
            polling=polling,
            publish=self.publish,
            observed=self.observed,
            follower=None if follow is None else follow(observation, servers),
            pace=self.pace,
        )

    def _servers_of(self, backend: Backend) -> ServerSet:
        from specmux_aggregator.backend_sources.servers import ServerSet
        from specmux_aggregator.upstream.client import BackendClient

        connect = {
            url: partial(
                BackendClient,
                replace(backend, url=url),
                polling=self.settings.polling,
                limits=self.settings.limits,
                identities=self.identities,
                bodies=self.bodies,
            )
            for url in (backend.urls or (backend.url,))
        }
        # Behind a proxy, the proxy resolves the name.
        return ServerSet(connect, has_addresses=backend.proxy_url is None)


def origin_of(
    backend: Backend,
    worker: Worker,
    *,
    manifests: Manifests | None,
    servers: ServerSet | None,
    polling: PollingSettings,
    limits: LimitSettings,
) -> Origin:
    """A new origin; the caller closes it. ``manifests``: those of the watched cluster, for the backend found
    there. ``servers``: of a backend with a URL; the origin closes them."""
    match backend.kind:
        case BackendKind.DIRECTORY:
            return FolderOrigin(
                backend,
                _folder(backend, limits),
                worker,
                limits=limits.of_documents,
                max_group_versions=limits.max_group_versions,
            )
        case BackendKind.CRDS:
            from specmux_aggregator.backend_sources.crds import CRDsOrigin
            from specmux_aggregator.backend_sources.manifests import FolderManifests

            if backend.found is None or manifests is None:
                manifests = FolderManifests(_folder(backend, limits))
            return CRDsOrigin(backend, manifests, worker, limits=limits.of_documents)
        case BackendKind.AUTO | BackendKind.V2 | BackendKind.V3:
            if servers is None:
                raise ValueError(f"backend {backend.name} has no URL")
            from specmux_aggregator.backend_sources.http import HTTPOrigin

            return HTTPOrigin(
                backend,
                servers,
                worker,
                limits=limits.of_documents,
                max_group_versions=limits.max_group_versions,
                v3_probe_interval=polling.v3_probe_interval,
            )


def _folder(backend: Backend, limits: LimitSettings) -> DocumentFiles:
    if backend.kubernetes is not None:
        from specmux_aggregator.backend_sources.release_files import ReleaseFiles

        return ReleaseFiles(backend.kubernetes, backend.directory, max_files=limits.max_group_versions)
    if backend.directory is None:
        raise ValueError(f"backend {backend.name} has no directory")
    if is_layout(backend.directory):
        from specmux_aggregator.backend_sources.oci_layout import LayoutFiles

        return LayoutFiles(
            backend.directory, max_files=limits.max_group_versions, max_bytes=limits.max_document_bytes
        )
    return Folder(backend.directory, max_files=limits.max_group_versions, max_bytes=limits.max_document_bytes)
