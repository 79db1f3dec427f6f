"""The origin of each kind of backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from specmux_aggregator.backend_sources.files import DocumentFiles, Folder
from specmux_aggregator.backend_sources.folder import FolderOrigin
from specmux_aggregator.backend_sources.manifests import Manifests
from specmux_aggregator.backend_sources.origin import Origin
from specmux_aggregator.config.settings import LimitSettings, PollingSettings
from specmux_aggregator.folders import is_layout
from specmux_aggregator.model.backend import Backend, BackendKind
from specmux_aggregator.workers.worker import Worker

if TYPE_CHECKING:  # imported where a backend is of that kind
    from specmux_aggregator.backend_sources.servers import ServerSet


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
            from specmux_aggregator.backend_sources.folder_manifests import FolderManifests

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
        from specmux_aggregator.backend_sources.layout_files import LayoutFiles

        return LayoutFiles(
            backend.directory, max_files=limits.max_group_versions, max_bytes=limits.max_document_bytes
        )
    return Folder(backend.directory, max_files=limits.max_group_versions, max_bytes=limits.max_document_bytes)
