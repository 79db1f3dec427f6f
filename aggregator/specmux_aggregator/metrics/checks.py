"""Metrics of checking a backend."""

from __future__ import annotations

from specmux_aggregator.backend_sources.outcome import BackendOffers, Outcome
from specmux_aggregator.metrics.instruments import Metrics
from specmux_aggregator.model.backend import BackendKind
from specmux_aggregator.model.failure import Failure
from specmux_aggregator.model.observation import Observation


def count_check(metrics: Metrics, observation: Observation, outcome: Outcome, seconds: float) -> None:
    """Count one check. ``seconds``: its duration."""
    if isinstance(outcome, Failure):
        metrics.timed("poll", "failed", seconds)
        metrics.backend_failures.labels(observation.backend.name, outcome.cause.value).inc()
        return
    is_built = isinstance(outcome, BackendOffers) and outcome.dialect is not BackendKind.V3 and outcome.bodies
    metrics.timed("convert" if is_built else "poll", "ok", seconds)
    if not isinstance(outcome, BackendOffers):
        return
    for duration in outcome.seconds.values():
        metrics.crd_aggregation.observe(duration)
    if outcome.dialect is BackendKind.V2:
        for group_version in outcome.bodies:
            is_lossy = bool(outcome.offers[group_version].losses)
            metrics.conversions.labels("true" if is_lossy else "false").inc()
