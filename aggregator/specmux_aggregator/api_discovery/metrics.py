"""Metrics of discovery, read when scraped."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from heapq import nlargest
from operator import itemgetter

from prometheus_client.core import GaugeMetricFamily, Metric

from specmux_aggregator.api_discovery.report import stale, without_discovery, without_openapi
from specmux_aggregator.api_discovery.watch import DiscoveryWatch
from specmux_aggregator.model.snapshot import Snapshot


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
