"""Every metric of the service, created on the caller's registry. Names are stable: docs/metrics.md.

No label contains what a client sent, except the products of ``SwaggerReaders``: routes, formats, codes,
backends and group-versions are the service's own.
"""

from __future__ import annotations

from collections import Counter as Counts
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from specmux_aggregator.aggregation.check_schedule import BackendCheck
from specmux_aggregator.backend_sources.outcome import BackendOffers, Outcome
from specmux_aggregator.documents.representations import Usage
from specmux_aggregator.metrics.swagger_readers import SwaggerReaders
from specmux_aggregator.model.backend import BackendKind, BackendName
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.model.observation import Observation
from specmux_aggregator.model.snapshot import Snapshot

CONTENT_TYPE: Final = CONTENT_TYPE_LATEST

AGGREGATION_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
"""Seconds. KEP-2896 names the metric without buckets; these range from one CRD version to a whole slow
backend."""


AUTH_REASONS: Final = ("malformed", "no_credentials", "bad_credentials", "forbidden", "unavailable")
AUTH_REVIEWS: Final = ("token", "access")
READER_RESULTS: Final = ("ok", "busy", "failed", "timeout")
VALIDATION_RESULTS: Final = ("valid", "invalid", "refused", "busy", "failed")
"""``refused``: not an object that can be checked; ``busy``: 429."""
AUTH_RESULTS: Final = ("answered", "failed", "crowded")
"""Labels of authentication, created at the start, so that an alert can distinguish zero from absent."""


class Metrics:
    """Instruments that code updates. State is collected by ``StateCollector``."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        self.aggregation = Histogram(
            "specmux_aggregation_duration_seconds",
            "How long each step from a backend to its published documents took.",
            ["phase", "result"],
            buckets=AGGREGATION_BUCKETS,
            registry=registry,
        )
        self._timers: dict[tuple[str, str], Histogram] = {}
        """By phase and result: looking up a series costs more than updating it."""
        self.crd_aggregation = Histogram(
            "crd_openapi_v3_aggregation_duration_seconds",
            "How long the document of a group-version of CustomResourceDefinitions took (KEP-2896).",
            buckets=AGGREGATION_BUCKETS,
            registry=registry,
        )
        self.backend_failures = Counter(
            "specmux_backend_failures",
            "Failed checks, downloads and passed-on requests of a backend.",
            ["backend", "cause"],
            registry=registry,
        )
        self.conversions = Counter(
            "specmux_conversions",
            "Documents converted from Swagger 2.0 and published.",
            ["lossy"],
            registry=registry,
        )
        self.config_reloads = Counter(
            "specmux_config_reloads",
            "Readings of a changed configuration.",
            ["result"],
            registry=registry,
        )
        self.config_is_current = Gauge(
            "specmux_config_last_reload_successful",
            "1 when the configuration in force is the one in the file.",
            registry=registry,
        )
        self.config_is_current.set(1)
        self.reader_jobs = Counter(
            "specmux_reader_jobs",
            "Jobs of the process that explains, searches and renders.",
            ["result"],
            registry=registry,
        )
        for result in READER_RESULTS:
            self.reader_jobs.labels(result)
        self.validations = Counter(
            "specmux_validations",
            "Objects that clients sent to be checked.",
            ["result"],
            registry=registry,
        )
        for result in VALIDATION_RESULTS:
            self.validations.labels(result)
        self.swagger_readers = SwaggerReaders()
        registry.register(self.swagger_readers)
        self.proxy = ProxyMetrics(registry)
        self.auth = AuthMetrics(registry)

    def record_duration(self, phase: str, result: str, seconds: float) -> None:
        timer = self._timers.get((phase, result))
        if timer is None:
            timer = self._timers[phase, result] = self.aggregation.labels(phase, result)
        timer.observe(seconds)

    def reader_job(self, result: str) -> None:
        """Count the result of a job of the reader."""
        self.reader_jobs.labels(result).inc()

    def validation(self, result: str) -> None:
        """Count the result of checking a client's object."""
        self.validations.labels(result).inc()

    def config_read(self, *, is_current: bool) -> None:
        """Count a changed configuration that was read, and applied or refused."""
        self.config_reloads.labels("ok" if is_current else "failed").inc()
        self.config_is_current.set(is_current)

    def forget_backend(self, name: BackendName) -> None:
        """Remove the series of a backend that is no longer configured."""
        for cause in Cause:
            self.backend_failures.remove(name, cause.value)
        for code in ("2xx", "3xx", "4xx", "5xx"):
            self.proxy.requests.remove(name, code)
        for direction in ("request", "answer"):
            self.proxy.bytes.remove(name, direction)

    def exposition(self) -> bytes:
        """The text for Prometheus."""
        return generate_latest(self.registry)


class ProxyMetrics:
    """Metrics of relayed requests."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.requests = Counter(
            "specmux_proxied_requests",
            "Requests passed on to a backend, by the class of the answer's status.",
            ["backend", "code"],
            registry=registry,
        )
        self.bytes = Counter(
            "specmux_proxied_bytes",
            "Bytes of bodies passed on: of requests and of answers.",
            ["backend", "direction"],
            registry=registry,
        )
        self.in_flight = Gauge(
            "specmux_proxied_requests_in_flight",
            "Requests passed on whose answer is not at its end; watches among them.",
            registry=registry,
        )


class AuthMetrics:
    """Metrics of authentication."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.is_up = Gauge(
            "specmux_auth_up",
            "1 when callers that are not known yet can be let in; always without authentication.",
            registry=registry,
        )
        self.is_up.set(1)
        self.refusals = Counter(
            "specmux_auth_refusals",
            "Requests refused by authentication or authorisation.",
            ["reason"],
            registry=registry,
        )
        for reason in AUTH_REASONS:
            self.refusals.labels(reason)
        self.reviews = Counter(
            "specmux_auth_reviews",
            "TokenReviews and SubjectAccessReviews asked of the cluster.",
            ["kind", "result"],
            registry=registry,
        )
        self.review_seconds = Histogram(
            "specmux_auth_review_duration_seconds",
            "How long a review took.",
            ["kind"],
            buckets=AGGREGATION_BUCKETS,
            registry=registry,
        )
        for kind in AUTH_REVIEWS:
            self.review_seconds.labels(kind)
            for result in AUTH_RESULTS:
                self.reviews.labels(kind, result)


class StateCollector:
    """Reads the state when scraped, so that no gauge lags or outlives its backend."""

    def __init__(
        self,
        *,
        snapshot: Callable[[], Snapshot],
        checks: Callable[[], Iterable[tuple[Observation, BackendCheck]]],
        usage: Callable[[], Usage],
        now: Callable[[], float],
        unavailable: Callable[[], Mapping[BackendName, bool]],
        most_series: int,
    ) -> None:
        """``unavailable``: backends that the cluster reports as unavailable. ``most_series``: group-versions
        up to which each has its own series."""
        self._most_series = most_series
        self._snapshot = snapshot
        self._checks = checks
        self._usage = usage
        self._now = now
        self._unavailable = unavailable

    def collect(self) -> Iterator[Metric]:
        yield from self._backends()
        yield from self._group_versions(self._snapshot())
        yield from self._store(self._usage())

    def _backends(self) -> Iterator[Metric]:
        up = GaugeMetricFamily(
            "specmux_backend_up",
            "1 when the last check of the backend succeeded; not there for one that is closed.",
            labels=["backend"],
        )
        closed = GaugeMetricFamily(
            "specmux_backend_closed",
            "1 when the extension apiserver refuses us and is shown no credentials; the apiserver stands in.",
            labels=["backend"],
        )
        servers = GaugeMetricFamily(
            "specmux_backend_servers",
            "Servers of the backend that are known to differ, or are listed and answer; 1 for one alone.",
            labels=["backend"],
        )
        failing = GaugeMetricFamily(
            "specmux_backend_servers_failing",
            "Of the servers of the backend those that failed when they were asked last.",
            labels=["backend"],
        )
        unavailable = GaugeMetricFamily(
            "aggregator_unavailable_apiservice",
            "1 when the backend is unavailable, or its APIService not Available, as kube-aggregator has it.",
            labels=["name"],
        )
        age = GaugeMetricFamily(
            "specmux_backend_age_seconds",
            "Since the last successful check of the backend.",
            labels=["backend"],
        )
        said = self._unavailable()
        for observation, check in self._checks():
            name = observation.backend.name
            is_up = observation.attempted and observation.failure is None
            if not observation.is_closed:
                up.add_metric([name], float(is_up))
            closed.add_metric([name], float(observation.is_closed))
            servers.add_metric([name], float(len(observation.servers) or 1))
            failed = sum(server.failure is not None for server in observation.servers)
            failing.add_metric([name], float(failed))
            unavailable.add_metric([name], float(said.get(name, not is_up)))
            if check.succeeded_at is not None:
                age.add_metric([name], max(0.0, self._now() - check.succeeded_at))
        yield from (up, closed, servers, failing, unavailable, age)

    def _group_versions(self, snapshot: Snapshot) -> Iterator[Metric]:
        info = GaugeMetricFamily(
            "specmux_group_version_info",
            "1 for every published group-version, with its owner and where the document comes from.",
            labels=["group_version", "backend", "provenance"],
        )
        size = GaugeMetricFamily(
            "specmux_group_version_bytes",
            "JSON bytes of the document, where known.",
            labels=["group_version"],
        )
        age = GaugeMetricFamily(
            "specmux_group_version_age_seconds",
            "Since the backend that owns the group-version last changed or recovered.",
            labels=["group_version"],
        )
        published = GaugeMetricFamily(
            "specmux_group_versions", "Published group-versions.", labels=["backend", "provenance"]
        )
        owned = Counts((entry.owner, entry.offer.provenance.value) for entry in snapshot.entries.values())
        for labels, count in sorted(owned.items()):
            published.add_metric(labels, count)
        yield published
        has_series = len(snapshot.entries) <= self._most_series
        for key, entry in snapshot.entries.items() if has_series else ():
            info.add_metric([key, entry.owner, entry.offer.provenance.value], 1)
            if entry.offer.size is not None:
                size.add_metric([key], entry.offer.size)
            changed_at = snapshot.observations[entry.owner].changed_at
            if changed_at is not None:
                age.add_metric([key], max(0.0, self._now() - changed_at))
        yield from (info, size, age)
        yield GaugeMetricFamily(
            "specmux_group_version_conflicts",
            "Group-versions that more than one backend offers.",
            value=len(snapshot.conflicts),
        )
        yield GaugeMetricFamily(
            "specmux_snapshot_generation", "Rises with every published change.", value=snapshot.generation
        )

    def _store(self, usage: Usage) -> Iterator[Metric]:
        yield GaugeMetricFamily(
            "specmux_documents_bytes", "Bytes of documents in memory, in all forms.", value=usage.bytes
        )
        yield GaugeMetricFamily(
            "specmux_documents_pinned_bytes",
            "Of these, bytes that are never evicted.",
            value=usage.pinned_bytes,
        )
        yield GaugeMetricFamily("specmux_documents_forms", "Forms of documents in memory.", value=usage.forms)
        evictions = CounterMetricFamily(
            "specmux_documents_evictions", "Forms evicted to hold the memory bound."
        )
        evictions.add_metric([], usage.evictions)
        yield evictions
        sheddings = CounterMetricFamily("specmux_documents_shed", "Forms dropped because memory is short.")
        sheddings.add_metric([], usage.sheddings)
        yield sheddings


def count_check(metrics: Metrics, observation: Observation, outcome: Outcome, seconds: float) -> None:
    """Count one check. ``seconds``: its duration."""
    if isinstance(outcome, Failure):
        metrics.record_duration("poll", "failed", seconds)
        metrics.backend_failures.labels(observation.backend.name, outcome.cause.value).inc()
        return
    is_built = isinstance(outcome, BackendOffers) and outcome.dialect is not BackendKind.V3 and outcome.bodies
    metrics.record_duration("convert" if is_built else "poll", "ok", seconds)
    if not isinstance(outcome, BackendOffers):
        return
    for duration in outcome.seconds.values():
        metrics.crd_aggregation.observe(duration)
    if outcome.dialect is BackendKind.V2:
        for group_version in outcome.bodies:
            is_lossy = bool(outcome.offers[group_version].losses)
            metrics.conversions.labels("true" if is_lossy else "false").inc()
