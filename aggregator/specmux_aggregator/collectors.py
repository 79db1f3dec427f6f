"""The metric collectors of a service."""

from __future__ import annotations

import time
from collections.abc import Iterator
from heapq import nlargest
from typing import Protocol

from prometheus_client import ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from specmux_aggregator.aggregation.document_checks import DocumentChecks
from specmux_aggregator.api_discovery.metrics import DiscoveryCollector
from specmux_aggregator.config.settings import Settings
from specmux_aggregator.documents.deltas import Deltas
from specmux_aggregator.documents.memory_pressure import MemoryWatch
from specmux_aggregator.documents.metrics import DeltaCollector, LimitCollector
from specmux_aggregator.endpoints.health import ServiceState
from specmux_aggregator.endpoints.service import Service
from specmux_aggregator.metrics.instruments import Metrics, StateCollector
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
    deltas: Deltas | None,
) -> None:
    """Register the collectors of every part that exists."""
    registry, cluster = metrics.registry, state.cluster
    most_series = settings.limits.group_version_series
    registry.register(
        StateCollector(
            snapshot=lambda: state.publisher.current,
            checks=state.backends.checks,
            usage=state.representations.usage,
            now=time.time,
            unavailable=lambda: {} if cluster is None else cluster.unavailable,
            most_series=most_series,
        )
    )
    if cluster is not None:
        from specmux_aggregator.kubernetes.metrics import SourceCollector

        registry.register(SourceCollector(lambda: cluster.watches))
    registry.register(RequestCollector(server.stats.snapshot, moved=lambda: service.moved))
    registry.register(LimitCollector(settings, memory=lambda: memory.state))
    if deltas is not None:
        registry.register(DeltaCollector(deltas))
    if schemas is not None:
        registry.register(SchemaCollector(schemas))
    if state.document_checks is not None:
        registry.register(DocumentCheckCollector(state.document_checks, most_series=most_series))
    if state.discovery is not None:
        registry.register(
            DiscoveryCollector(
                state.discovery, snapshot=lambda: state.publisher.current, most_series=most_series
            )
        )
    ProcessCollector(registry=registry)


class KeptFiles(Protocol):
    """The part of the endpoint's store that is read."""

    bytes: int

    def __len__(self) -> int: ...


class Files(Protocol):
    """The part of the endpoint that is read."""

    made: int

    @property
    def kept(self) -> KeptFiles: ...


class SchemaCollector:
    def __init__(self, files: Files) -> None:
        self._files = files

    def collect(self) -> Iterator[Metric]:
        kept = self._files.kept
        yield GaugeMetricFamily("specmux_tools_bytes", "Bytes of schemas in memory.", value=kept.bytes)
        yield GaugeMetricFamily("specmux_tools_files", "Schemas in memory, in all codings.", value=len(kept))
        yield CounterMetricFamily("specmux_tools_made", "Schemas that were made.", value=self._files.made)


class DocumentCheckCollector:
    def __init__(self, checks: DocumentChecks, *, most_series: int) -> None:
        self._checks = checks
        self._most_series = most_series

    def collect(self) -> Iterator[Metric]:
        findings = GaugeMetricFamily(
            "specmux_document_findings",
            "What a check of a published document found.",
            labels=["group_version", "level"],
        )
        counted = [
            (check.summary.errors, check.summary.warnings, key)
            for key, check in self._checks.known.items()
            if check.summary is not None
        ]
        for errors, warnings, group_version in nlargest(self._most_series, counted):
            findings.add_metric([group_version, "error"], errors)
            findings.add_metric([group_version, "warning"], warnings)
        yield findings
        yield GaugeMetricFamily(
            "specmux_documents_unchecked",
            "Published documents that wait for their check.",
            value=self._checks.waiting,
        )
