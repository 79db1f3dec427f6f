"""Which collectors a service has."""

from __future__ import annotations

import time
from collections.abc import Callable

from prometheus_client import ProcessCollector

from specmux_aggregator.aggregation.check_metrics import DocumentCheckCollector
from specmux_aggregator.aggregation.document_checks import DocumentChecks
from specmux_aggregator.aggregation.publisher import Publisher
from specmux_aggregator.aggregation.supervisor import Backends
from specmux_aggregator.config.settings import Settings
from specmux_aggregator.discovery.metrics import DiscoveryCollector
from specmux_aggregator.discovery.watch import DiscoveryWatch
from specmux_aggregator.documents.memory import MemoryWatch
from specmux_aggregator.documents.metrics import LimitCollector
from specmux_aggregator.documents.representations import Representations
from specmux_aggregator.kubernetes.metrics import SourceCollector
from specmux_aggregator.kubernetes.source import ClusterSource
from specmux_aggregator.metrics.instruments import Metrics, StateCollector
from specmux_aggregator.metrics.schemas import Files, SchemaCollector
from specmux_aggregator.server.listener import HTTPServer
from specmux_aggregator.server.metrics import RequestCollector


def register_collectors(
    metrics: Metrics,
    settings: Settings,
    *,
    publisher: Publisher,
    backends: Backends,
    representations: Representations,
    cluster: ClusterSource | None,
    server: HTTPServer,
    moved: Callable[[], int],
    memory: MemoryWatch,
    schemas: Files | None,
    document_checks: DocumentChecks | None,
    discovery: DiscoveryWatch | None,
) -> None:
    """Have all that is there read at each scrape. ``moved``: documents that were replaced as they were
    fetched."""
    registry = metrics.registry
    registry.register(
        StateCollector(
            snapshot=lambda: publisher.current,
            checks=backends.checks,
            usage=representations.usage,
            now=time.time,
            unavailable=lambda: {} if cluster is None else cluster.unavailable,
        )
    )
    registry.register(SourceCollector(lambda: {} if cluster is None else cluster.watches))
    registry.register(RequestCollector(server.stats.snapshot, moved=moved))
    registry.register(LimitCollector(settings, memory=lambda: memory.state))
    if schemas is not None:
        registry.register(SchemaCollector(schemas))
    if document_checks is not None:
        registry.register(DocumentCheckCollector(document_checks))
    if discovery is not None:
        registry.register(DiscoveryCollector(discovery, snapshot=lambda: publisher.current))
    ProcessCollector(registry=registry)
