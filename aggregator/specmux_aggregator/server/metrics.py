"""The server's counters of requests and clients (server/stats.py) as Prometheus families.

No label holds anything that a client sent: routes, formats and codes come from this package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import fields
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from specmux_aggregator.server.stats import BOUNDS, Durations, RequestCounters, RequestCounts


class RequestCollector:
    """Reads the counters when scraped."""

    def __init__(self, counts: Callable[[], RequestCounts], *, moved: Callable[[], int]) -> None:
        """``moved``: number of redirects because a backend had replaced the document since the root was
        read."""
        self._counts = counts
        self._moved = moved

    def collect(self) -> Iterator[Metric]:
        counts = self._counts()
        yield from self._answers(counts)
        yield from _clients(counts)
        for name, text, value in _totals(counts):
            family = CounterMetricFamily(name, text)
            family.add_metric([], value)
            yield family

    def _answers(self, counts: RequestCounts) -> Iterator[Metric]:
        durations = HistogramMetricFamily(
            "specmux_request_duration_seconds",
            "From a request's last byte read to its answer handed to the kernel.",
            labels=["route", "format", "code"],
        )
        for labels, buckets, seconds in _merge_cells(counts.durations):
            durations.add_metric(labels, buckets, seconds)
        yield durations
        redirected = sum(sum(cell.buckets) for cell in counts.durations if cell.code == 301)
        redirects = CounterMetricFamily(
            "specmux_redirects",
            "Requests answered with the current hash, by what was wrong with theirs.",
            labels=["reason"],
        )
        moved = min(self._moved(), redirected)
        redirects.add_metric(["stale_hash"], redirected - moved)
        redirects.add_metric(["moved_upstream"], moved)
        yield redirects


def _clients(counts: RequestCounts) -> Iterator[Metric]:
    yield GaugeMetricFamily("specmux_requests_in_flight", "Requests being answered.", value=counts.in_flight)
    yield GaugeMetricFamily("specmux_connections", "Open client connections.", value=counts.connections)
    refused = CounterMetricFamily(
        "specmux_connections_refused",
        "Connections closed at once, by whose cap was reached: of all together, or of one address.",
        labels=["cap"],
    )
    refused.add_metric(["total"], counts.connections_refused)
    refused.add_metric(["address"], counts.connections_refused_by_address)
    yield refused


def _totals(counts: RequestCounts) -> Iterator[tuple[str, str, float]]:
    """Name, help text and value of each counter without labels."""
    stale = sum(sum(cell.buckets) for cell in counts.durations if cell.is_stale)
    yield "specmux_stale_served", "Answers given while their backend was failing.", stale
    for counter in fields(RequestCounters):
        if counter.metadata:
            yield counter.metadata["metric"], counter.metadata["help"], getattr(counts, counter.name)


def _merge_cells(cells: Iterable[Durations]) -> Iterator[tuple[list[str], list[tuple[str, float]], float]]:
    """Labels, cumulative buckets and sum; fresh and stale answers are one series."""
    series: dict[tuple[str, str, str], tuple[list[int], float]] = {}
    for cell in cells:
        labels = (cell.route, cell.format, str(cell.code))
        counts, seconds = series.get(labels, ([0] * len(cell.buckets), 0.0))
        summed = [one + other for one, other in zip(counts, cell.buckets, strict=True)]
        series[labels] = (summed, seconds + cell.seconds)
    for labels, (counts, seconds) in series.items():
        yield list(labels), _cumulative(counts), seconds


def _cumulative(counts: list[int]) -> list[tuple[str, float]]:
    """Turn counts per bucket into cumulative counts, as Prometheus expects."""
    bounds = (*map(str, BOUNDS), "+Inf")
    return [(bound, float(total)) for bound, total in zip(bounds, accumulate(counts), strict=True)]
