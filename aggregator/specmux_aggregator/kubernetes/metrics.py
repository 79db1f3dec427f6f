"""Metrics of the watches of a cluster, read when scraped."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from specmux_aggregator.kubernetes.watch import WatchPhase, WatchState


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
            up.add_metric([name], float(state.phase is WatchPhase.SYNCED))
            objects.add_metric([name], state.objects)
            if state.heard_at is not None:
                age.add_metric([name], time.monotonic() - state.heard_at)
            lists.add_metric([name], state.lists)
            restarts.add_metric([name], state.restarts)
        yield from (up, objects, age, lists, restarts)
