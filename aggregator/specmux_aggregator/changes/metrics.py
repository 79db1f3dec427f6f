"""Metrics of the change history."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from specmux_aggregator.changes.entries import ComparisonOutcome, LogEntry
from specmux_aggregator.changes.history import History
from specmux_aggregator.metrics.instruments import AGGREGATION_BUCKETS
from specmux_aggregator.model.snapshot import Snapshot

SEVERITIES = ("breaking", "warning", "notice")

Series = tuple[str, str]
"""Group-version and backend."""


class ChangeMetrics:
    """Receives every entry; reads the rest from the history."""

    def __init__(
        self, registry: CollectorRegistry, *, snapshot: Callable[[], Snapshot], most_series: int
    ) -> None:
        """``most_series``: group-versions up to which each has its own series."""
        self._most_series = most_series
        self._snapshot = snapshot
        self._history: History | None = None
        self._changes: Counter[tuple[Series, str]] = Counter()
        self._of_backends: Counter[tuple[str, str]] = Counter()
        """The sums by backend and severity; they never fall, whatever leaves the log."""
        self._outcomes: Counter[str] = Counter()
        self._seconds = Histogram(
            "specmux_change_comparison_duration_seconds",
            "How long it took to find out what changed in a document.",
            buckets=AGGREGATION_BUCKETS,
            registry=registry,
        )
        registry.register(self)

    def watch(self, history: History) -> None:
        """Set the history whose sizes are exported."""
        self._history = history

    def note_entry(self, entry: LogEntry, seconds: float) -> None:
        self._outcomes[entry.outcome.value] += 1
        if entry.outcome in (ComparisonOutcome.COMPARED, ComparisonOutcome.RETURNED):
            self._seconds.observe(seconds)
        version = entry.new or entry.old
        backend = "" if version is None else version.backend
        for word, count in entry.counts.items():
            self._changes[(entry.group_version, backend), word] += count
            self._of_backends[backend, word] += count

    def collect(self) -> Iterator[Metric]:
        changes = CounterMetricFamily(
            "specmux_group_version_changes",
            "Changes of published documents, by what they mean; of removals too.",
            labels=["group_version", "backend", "severity"],
        )
        for (group_version, backend), word, count in self._counts():
            changes.add_metric([group_version, backend, word], count)
        yield changes
        compared = CounterMetricFamily(
            "specmux_change_comparisons",
            "Documents that changed, by how that ended.",
            labels=["result"],
        )
        for outcome in ComparisonOutcome:
            compared.add_metric([outcome.value], self._outcomes[outcome.value])
        yield compared
        history = self._history
        yield GaugeMetricFamily(
            "specmux_change_documents_bytes",
            "Documents kept for comparisons, compressed, and the change log.",
            value=0 if history is None else history.kept.size + history.log.bytes,
        )
        yield GaugeMetricFamily(
            "specmux_change_subscribers",
            "Clients that follow changes or publications.",
            value=0 if history is None else len(history.followers),
        )

    def _counts(self) -> Iterator[tuple[Series, str, int]]:
        """The value of each series; with too many, of each backend without a group-version."""
        series = sorted(self._series())
        if len(series) <= self._most_series:
            yield from ((each, word, self._changes[each, word]) for each in series for word in SEVERITIES)
            return
        sums = dict.fromkeys((backend, word) for _, backend in series for word in SEVERITIES)
        for backend, word in sums:
            yield ("", backend), word, self._of_backends[backend, word]

    def _series(self) -> set[Series]:
        """The series of what is published or in the log; others are removed."""
        wanted: set[Series] = {(name, entry.owner) for name, entry in self._snapshot().entries.items()}
        for entry in () if self._history is None else self._history.log:
            version = entry.new or entry.old
            if version is not None:
                wanted.add((entry.group_version, version.backend))
        for key in [key for key in self._changes if key[0] not in wanted]:
            del self._changes[key]
        return wanted
