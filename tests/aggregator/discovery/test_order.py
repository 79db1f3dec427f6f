"""The order of versions and the priorities of groups."""

from __future__ import annotations

import random

import pytest

from specmux_aggregator.discovery.order import group_priority, version_priority, version_rank
from specmux_aggregator.model.backend import Backend, BackendName, Found, Kind
from specmux_converters.group_versions import GroupVersion

ORDERED = [
    "v10", "v2", "v1", "v11beta2", "v10beta3", "v3beta1", "v12alpha1", "v11alpha2", "foo1", "foo10",
    "v1gamma1",
]  # fmt: skip


def test_versions_sort_by_maturity_then_number_then_letters() -> None:
    shuffled = ORDERED.copy()
    random.Random(1).shuffle(shuffled)
    assert sorted(shuffled, key=version_rank) == ORDERED


@pytest.mark.parametrize("name", ["v0", "v01", "v1beta", "v1beta0", "V1", "v" + "9" * 5000, ""])
def test_version_sorts_behind_all_real_ones_when_it_is_none(name: str) -> None:
    assert version_rank(name) > version_rank("v1alpha1")


def backend(**fields: object) -> Backend:
    return Backend(name=BackendName("a"), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("group_version", "made", "wanted"),
    [
        ("apis/example.com/v1", backend(), (1000, 15)),
        ("apis/example.com/v1", backend(kind=Kind.CRDS), (1000, 100)),
        ("apis/apiregistration.k8s.io/v1", backend(), (20001, 15)),
        ("api/v1", backend(), (18000, 15)),
        ("apis/apps/v1", backend(), (17800, 15)),
        ("apis/apps/v1", backend(group_priority=5, version_priority=7), (5, 7)),
        (
            "apis/apps/v1",
            backend(group_priority=5, found=Found(priorities={GroupVersion("apis/apps/v1"): (9, 8)})),
            (9, 8),
        ),
    ],
)
def test_priorities(group_version: str, made: Backend, wanted: tuple[int, int]) -> None:
    key = GroupVersion(group_version)
    assert (group_priority(made, key), version_priority(made, key)) == wanted
