"""The metric collectors of a service."""

from __future__ import annotations

import time

from prometheus_client import ProcessCollector

from specmux_aggregator.aggregation.check_metrics import DocumentCheckCollector
from specmux_aggregator.config.settings import Settings
from specmux_aggregator.discovery.metrics import DiscoveryCollector
from specmux_aggregator.documents.memory import MemoryWatch
from specmux_aggregator.documents.metrics import LimitCollector
from specmux_aggregator.endpoints.health import ServiceState
from specmux_aggregator.endpoints.service import Service
from specmux_aggregator.kubernetes.metrics import SourceCollector
from specmux_aggregator.metrics.instruments import Metrics, StateCollector
from specmux_aggregator.metrics.schemas import Files, SchemaCollector
from specmux_aggregator.server.listener import HTTPServer
from specmux_aggregator.server.metrics import RequestCollector


def register_collectors(
    metrics: Metrics,
    settings: Settings,
    state: ServiceState,
    *,
    server: HTTPServer,
    service: Service,
    memory: MemoryWatch,
    schemas: Files | None,
) -> None:
    """Register the collectors of every part that exists."""
    registry, cluster = metrics.registry, state.cluster
    registry.register(
        StateCollector(
            snapshot=lambda: state.publisher.current,
            checks=state.backends.checks,
            usage=state.representations.usage,
            now=time.time,
            unavailable=lambda: {} if cluster is None else cluster.unavailable,
        )
    )
    registry.register(SourceCollector(lambda: {} if cluster is None else cluster.watches))
    registry.register(RequestCollector(server.stats.snapshot, moved=lambda: service.moved))
    registry.register(LimitCollector(settings, memory=lambda: memory.state))
    if schemas is not None:
        registry.register(SchemaCollector(schemas))
    if state.document_checks is not None:
        registry.register(DocumentCheckCollector(state.document_checks))
    if state.discovery is not None:
        registry.register(DiscoveryCollector(state.discovery, snapshot=lambda: state.publisher.current))
    ProcessCollector(registry=registry)
