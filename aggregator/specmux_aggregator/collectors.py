"""The metric collectors of a service."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from heapq import nlargest
from operator import itemgetter
from typing import TYPE_CHECKING

from prometheus_client import ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from specmux_aggregator.aggregation.document_checks import DocumentChecks
from specmux_aggregator.api_discovery.report import stale, without_discovery, without_openapi
from specmux_aggregator.api_discovery.watch import DiscoveryWatch
from specmux_aggregator.config.settings import Settings
from specmux_aggregator.documents.deltas import DeltaResult, Deltas
from specmux_aggregator.documents.memory_pressure import MemoryState, MemoryWatch
from specmux_aggregator.endpoints.health import ServiceState
from specmux_aggregator.endpoints.service import Service
from specmux_aggregator.json_schema_files.endpoint import SchemaFiles
from specmux_aggregator.metrics.instruments import Metrics, StateCollector
from specmux_aggregator.model.snapshot import Snapshot
from specmux_aggregator.server.listener import HTTPServer
from specmux_aggregator.server.metrics import RequestCollector

if TYPE_CHECKING:  # loaded for a cluster alone
    from specmux_aggregator.kubernetes.watch import WatchState


def register_collectors(
    metrics: Metrics,
    settings: Settings,
    state: ServiceState,
    *,
    server: HTTPServer,
    service: Service,
    memory: MemoryWatch,
    schemas: SchemaFiles | None,
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


class SchemaCollector:
    def __init__(self, files: SchemaFiles) -> None:
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


class SourceCollector:
    """Reads the state of the watches when scraped, by the name of their resource."""

    def __init__(self, watches: Callable[[], Mapping[str, WatchState]]) -> None:
        self._watches = watches

    def collect(self) -> Iterator[Metric]:
        up = GaugeMetricFamily(
            "specmux_source_up",
            "1 when the watch works; 0 also where it is forbidden, and done without.",
            labels=["resource"],
        )
        objects = GaugeMetricFamily("specmux_source_objects", "Objects that are known.", labels=["resource"])
        age = GaugeMetricFamily(
            "specmux_source_heard_age_seconds",
            "Since the last list, event or bookmark.",
            labels=["resource"],
        )
        lists = CounterMetricFamily(
            "specmux_source_lists", "Times that all objects were listed.", labels=["resource"]
        )
        restarts = CounterMetricFamily(
            "specmux_source_watch_restarts", "Watches after the first one.", labels=["resource"]
        )
        for name, state in self._watches().items():
            up.add_metric([name], float(state.is_synced))
            objects.add_metric([name], state.objects)
            if state.heard_at is not None:
                age.add_metric([name], time.monotonic() - state.heard_at)
            lists.add_metric([name], state.lists)
            restarts.add_metric([name], state.restarts)
        yield from (up, objects, age, lists, restarts)


class LimitCollector:
    """``settings``: those of the start; limits do not change while the service runs."""

    def __init__(self, settings: Settings, *, memory: Callable[[], MemoryState]) -> None:
        self._settings = settings
        self._memory = memory

    def collect(self) -> Iterator[Metric]:
        listen, memory = self._settings.listen, self._settings.memory
        for name, text, value in (
            ("specmux_connections_limit", "Open connections in total, at most.", listen.max_connections),
            (
                "specmux_connections_per_address_limit",
                "Open connections of one address, at most; 0: no cap.",
                listen.max_connections_per_address,
            ),
            (
                "specmux_requests_in_flight_limit",
                "Requests that wait, at most; 0: no cap.",
                listen.max_in_flight,
            ),
            (
                "specmux_documents_limit_bytes",
                "Bytes of documents in memory, at most.",
                memory.documents_bytes,
            ),
            (
                "specmux_memory_shed_ratio",
                "Share of the memory from which on documents are let go; 0: never.",
                memory.shed_percent / 100,
            ),
        ):
            yield GaugeMetricFamily(name, text, value=value)
        timeouts = GaugeMetricFamily(
            "specmux_client_timeout_seconds", "How long a client is waited for.", labels=["what"]
        )
        timeouts.add_metric(["header"], listen.header_timeout)
        timeouts.add_metric(["keepalive"], listen.keepalive_timeout)
        timeouts.add_metric(["write"], listen.write_timeout)
        yield timeouts
        yield from self._use(self._memory())

    def _use(self, state: MemoryState) -> Iterator[Metric]:
        used = GaugeMetricFamily(
            "specmux_memory_used_ratio", "Share of the memory that the service may have which is in use."
        )
        if state.share is not None:
            used.add_metric([], state.share)
        yield used
        yield GaugeMetricFamily(
            "specmux_memory_pressure",
            "1 while documents are dropped because memory is short.",
            value=int(state.is_pressed),
        )


class DeltaCollector:
    def __init__(self, deltas: Deltas) -> None:
        self._deltas = deltas

    def collect(self) -> Iterator[Metric]:
        offered = CounterMetricFamily(
            "specmux_dictionary_offers",
            "Dictionaries that clients offered, by what came of it; answers repeated from memory count once.",
            labels=["result"],
        )
        for result in DeltaResult:
            offered.add_metric([result.value], self._deltas.results[result])
        yield offered
        yield CounterMetricFamily(
            "specmux_dictionary_deltas_made",
            "Documents that were compressed with another.",
            value=self._deltas.made,
        )
        yield GaugeMetricFamily(
            "specmux_dictionary_deltas_bytes",
            "Bytes of such documents in memory.",
            value=self._deltas.kept.bytes,
        )


class DiscoveryCollector:
    """Metrics of one watch, compared with the Snapshot's documents."""

    def __init__(self, watch: DiscoveryWatch, *, snapshot: Callable[[], Snapshot], most_series: int) -> None:
        self._most_series = most_series
        self._watch = watch
        self._snapshot = snapshot

    def collect(self) -> Iterator[Metric]:
        up = GaugeMetricFamily(
            "specmux_discovery_up",
            "1 while what the backend serves is known and current.",
            labels=["backend"],
        )
        for follower in self._watch.followers():
            known = follower.knowledge
            up.add_metric([known.backend.name], float(known.attempted and known.failure is None))
        yield up
        directory, snapshot = self._watch.index.directory, self._snapshot()
        unconfirmed = GaugeMetricFamily(
            "specmux_discovery_unconfirmed_seconds",
            "Since when the resources of the group-version could not be confirmed; absent while they are.",
            labels=["group_version"],
        )
        now = time.monotonic()
        lapses = [(now - version.lapse.since, version) for version in directory.versions() if version.lapse]
        for seconds, version in nlargest(self._most_series, lapses, key=itemgetter(0)):
            unconfirmed.add_metric([version.group_version], max(0.0, seconds))
        yield unconfirmed
        for name, text, value in (
            (
                "specmux_discovery_group_versions",
                "Group-versions in the discovery that is served.",
                len(directory.versions()),
            ),
            (
                "specmux_discovery_stale_group_versions",
                "Of these, served as stale: clients drop them.",
                stale(directory),
            ),
            (
                "specmux_group_versions_without_openapi",
                "Group-versions in discovery that have no document.",
                len(without_openapi(directory, snapshot)),
            ),
            (
                "specmux_group_versions_without_discovery",
                "Group-versions with a document that are not in discovery.",
                len(without_discovery(directory, snapshot)),
            ),
        ):
            yield GaugeMetricFamily(name, text, value=value)
