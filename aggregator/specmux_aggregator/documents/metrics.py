"""The limits in force and memory usage as metrics, so that an alert can tell how close the service is to
them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from specmux_aggregator.config.settings import Settings
from specmux_aggregator.documents.deltas import DeltaResult, Deltas
from specmux_aggregator.documents.memory_pressure import MemoryState


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
