"""What a check of a backend adds to the metrics."""

from __future__ import annotations

from specmux_aggregator.metrics.instruments import Metrics
from specmux_aggregator.model.failure import Failure
from specmux_aggregator.model.observation import Dialect, Observation
from specmux_aggregator.origins.sighting import Seen, Sighting


def count_check(metrics: Metrics, observation: Observation, sighting: Sighting, seconds: float) -> None:
    """Count one check. ``seconds``: how long it took."""
    if isinstance(sighting, Failure):
        metrics.timed("poll", "failed", seconds)
        metrics.backend_failures.labels(observation.backend.name, sighting.cause.value).inc()
        return
    is_built = isinstance(sighting, Seen) and sighting.dialect is not Dialect.V3 and sighting.bodies
    metrics.timed("convert" if is_built else "poll", "ok", seconds)
    if not isinstance(sighting, Seen):
        return
    for duration in sighting.seconds.values():
        metrics.crd_aggregation.observe(duration)
    if sighting.dialect is Dialect.V2:
        for group_version in sighting.bodies:
            is_lossy = bool(sighting.offers[group_version].losses)
            metrics.conversions.labels("true" if is_lossy else "false").inc()
