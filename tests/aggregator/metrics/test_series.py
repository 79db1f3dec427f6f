"""The series of /metrics stay few, however many group-versions there are."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from specmux_aggregator.aggregation.ownership import merge
from specmux_aggregator.changes.metrics import ChangeMetrics
from specmux_aggregator.documents.representations import Usage
from specmux_aggregator.metrics.instruments import StateCollector
from specmux_aggregator.model.backend import Backend, BackendKind, BackendName
from specmux_aggregator.model.observation import Hash, Observation, Offer, Provenance
from specmux_aggregator.model.snapshot import Snapshot
from specmux_converters.group_versions import GroupVersion

OFFER = Offer(hash=Hash("A" * 128), provenance=Provenance.FILE, size=9)


def snapshot_of(count: int) -> Snapshot:
    backend = Backend(name=BackendName("d"), kind=BackendKind.DIRECTORY)
    offers = {GroupVersion(f"apis/g{number}.example.com/v1"): OFFER for number in range(count)}
    observation = Observation(backend=backend, offers=offers, attempted=True, changed_at=1.0)
    return merge({backend.name: observation}, generation=1)


def registry_of(snapshot: Snapshot) -> CollectorRegistry:
    registry = CollectorRegistry()
    usage = Usage(documents=0, bytes=0, pinned_bytes=0, forms=0, evictions=0, sheddings=0)
    registry.register(
        StateCollector(
            snapshot=lambda: snapshot,
            checks=lambda: (),
            usage=lambda: usage,
            now=lambda: 2.0,
            unavailable=dict,
            most_series=500,
        )
    )
    ChangeMetrics(registry, snapshot=lambda: snapshot, most_series=500)
    return registry


@pytest.mark.parametrize(("count", "own"), [(1, 6), (500, 3000), (501, 0), (10_000, 0)])
def test_series_of_group_versions_are_bounded(count: int, own: int) -> None:
    registry = registry_of(snapshot_of(count))
    samples = [sample for metric in registry.collect() for sample in metric.samples]
    assert sum(bool(sample.labels.get("group_version")) for sample in samples) == own
    assert len(samples) < 5000
    labels = {"backend": "d", "provenance": "file"}
    assert registry.get_sample_value("specmux_group_versions", labels) == count


def test_changes_of_many_group_versions_are_summed_by_backend_from_zero_on() -> None:
    registry = registry_of(snapshot_of(501))
    labels = {"group_version": "", "backend": "d", "severity": "breaking"}
    assert registry.get_sample_value("specmux_group_version_changes_total", labels) == 0
