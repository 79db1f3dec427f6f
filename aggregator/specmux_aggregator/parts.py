"""The endpoints of a service, as its settings want them."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from specmux_aggregator.aggregation.backend_sets import BackendSets
from specmux_aggregator.aggregation.document_checks import DocumentChecks
from specmux_aggregator.aggregation.publisher import Publisher
from specmux_aggregator.aggregation.supervisor import Backends
from specmux_aggregator.catalogue.answers import PREFIX, SchemaAccess, release_in
from specmux_aggregator.catalogue.endpoint import SchemaFiles
from specmux_aggregator.catalogue.tokens import PathTokens
from specmux_aggregator.config.settings import Settings
from specmux_aggregator.config.state import ConfigState
from specmux_aggregator.discovery.watch import DiscoveryWatch
from specmux_aggregator.documents.repository import DocumentRepository
from specmux_aggregator.documents.representations import Representations
from specmux_aggregator.endpoints.health import Pages
from specmux_aggregator.endpoints.service import Endpoint, Service
from specmux_aggregator.jobs.worker import Worker
from specmux_aggregator.kubernetes.source import ClusterSource
from specmux_aggregator.metrics.instruments import Metrics
from specmux_aggregator.questions.opening import reading_endpoints
from specmux_aggregator.questions.page_endpoint import LoggedChanges
from specmux_aggregator.questions.reading import Reading
from specmux_aggregator.version import VERSION


def schema_files_of(
    settings: Settings,
    publisher: Publisher,
    documents: DocumentRepository,
    worker: Worker,
    discovery: DiscoveryWatch | None,
) -> SchemaFiles | None:
    """None where JSON Schemas are off. Their release is the cluster's, unless the settings name one."""
    wanted = settings.schemas
    if not wanted.enabled:
        return None
    is_open = wanted.access == "anonymous" or not settings.auth.is_private

    def release() -> str | None:
        if wanted.release is not None or discovery is None:
            return wanted.release
        return release_in(discovery.index.directory.version)

    return SchemaFiles(
        lambda: publisher.current,
        documents,
        worker,
        limits=settings.limits.of_documents,
        access=SchemaAccess(is_private=not is_open, is_anonymous=is_open),
        max_bytes=wanted.max_bytes,
        release=release,
        base=wanted.base_url,
        tokens=None if wanted.token_file is None else PathTokens(wanted.token_file),
    )


def service_of(
    settings: Settings,
    metrics: Metrics,
    *,
    config: ConfigState,
    auth_complaint: Callable[[], str | None],
    publisher: Publisher,
    representations: Representations,
    documents: DocumentRepository,
    backends: Backends,
    backend_sets: BackendSets,
    cluster: ClusterSource | None,
    document_checks: DocumentChecks | None,
    reading: Reading,
    log: LoggedChanges | None,
    schemas: SchemaFiles | None,
    others: Mapping[str, Endpoint],
    discovery: DiscoveryWatch | None,
    is_looking: Callable[[], bool],
) -> Service:
    """``others``: endpoints of the rooms above, by the path that all of theirs begin with. Raises
    InvalidConfig where Swagger UI is asked for and not there."""
    is_private = settings.auth.is_private
    pages = Pages(
        publisher,
        backends,
        representations,
        metrics,
        version=VERSION,
        config=config,
        auth_complaint=auth_complaint,
        discovery=discovery,
        backend_sets=backend_sets,
        cluster=cluster,
        document_checks=document_checks,
    )
    read = reading_endpoints(
        reading, status=pages.status, log=log, is_private=is_private, has_swagger=settings.ui.swagger
    )
    files: dict[str, Endpoint] = {} if schemas is None else {PREFIX: schemas}
    return Service(
        publisher,
        representations,
        documents,
        refresher_of=backends.refresher,
        pages=pages.by_path(),
        endpoints={**files, **others, **read},
        discovery=discovery,
        is_private=is_private,
        is_looking=is_looking,
    )
