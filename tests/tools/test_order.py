"""The order of groups and versions."""

from __future__ import annotations

import random

import pytest

from shared_data import DATA, load
from specmux_converters.group_versions import GroupVersion
from specmux_converters.order import discovery_rank, maturity, version_rank

ORDERED = [
    "v10", "v2", "v01", "v1", "v0", "v11beta2", "v10beta3", "v3beta1", "v1beta0", "v12alpha1", "v11alpha2",
    "foo1", "foo10",
    "v1gamma1",
]  # fmt: skip


def test_versions_sort_by_maturity_then_number_then_letters() -> None:
    shuffled = ORDERED.copy()
    random.Random(1).shuffle(shuffled)
    assert sorted(shuffled, key=version_rank) == ORDERED


@pytest.mark.parametrize("name", ["v1beta", "V1", "v1.0", "v-1", "v" + str(2**63), "v" + "9" * 5000, ""])
def test_version_sorts_behind_all_real_ones_when_it_is_none(name: str) -> None:
    assert version_rank(name) > version_rank("v1alpha1")


@pytest.mark.parametrize(("version", "expected"), [("v1", 0), ("v2beta1", 1), ("v1alpha3", 2), ("next", 0)])
def test_maturity_of_a_version(version: str, expected: int) -> None:
    assert maturity(version) == expected


def test_discovery_goes_by_group_then_version() -> None:
    keys = ["version", "apis/zoo.example.org/v1", "apis/apps/v1beta1", "apis/ants.example.org/v1", "api/v1"]
    ordered = [
        "api/v1",
        "apis/apps/v1beta1",
        "apis/ants.example.org/v1",
        "apis/zoo.example.org/v1",
        "version",
    ]
    assert sorted(map(GroupVersion, keys), key=discovery_rank) == ordered


def test_versions_of_zero_are_versions() -> None:
    case = load(DATA / "defects/14-discovery-v0.json")
    assert sorted(case["versions"], key=version_rank) == case["upstream_order"]
