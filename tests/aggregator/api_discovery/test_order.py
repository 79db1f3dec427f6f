"""The order of versions and the priorities of groups."""

from __future__ import annotations

import pytest

from specmux_aggregator.api_discovery.merge import group_priority, version_priority
from specmux_aggregator.model.backend import Backend, BackendKind, BackendName, ClusterFacts
from specmux_converters.group_versions import GroupVersion


def backend(**fields: object) -> Backend:
    return Backend(name=BackendName("a"), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("group_version", "made", "wanted"),
    [
        ("apis/example.com/v1", backend(), (1000, 15)),
        ("apis/example.com/v1", backend(kind=BackendKind.CRDS), (1000, 100)),
        ("apis/apiregistration.k8s.io/v1", backend(), (20001, 15)),
        ("api/v1", backend(), (18000, 15)),
        ("apis/apps/v1", backend(), (17800, 15)),
        ("apis/apps/v1", backend(group_priority=5, version_priority=7), (5, 7)),
        (
            "apis/apps/v1",
            backend(group_priority=5, found=ClusterFacts(priorities={GroupVersion("apis/apps/v1"): (9, 8)})),
            (9, 8),
        ),
    ],
)
def test_priorities(group_version: str, made: Backend, wanted: tuple[int, int]) -> None:
    key = GroupVersion(group_version)
    assert (group_priority(made, key), version_priority(made, key)) == wanted
