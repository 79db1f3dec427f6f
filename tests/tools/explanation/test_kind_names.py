"""What a kind may be called, and which one is meant."""

from __future__ import annotations

import pytest

from data.explained_documents import bed, release
from specmux_converters.group_versions import GroupVersion
from specmux_tools.errors import InvalidPath, UnknownKind
from specmux_tools.explanation.field_path import parse
from specmux_tools.explanation.kind_names import find_kind, kind_names

BEDS = kind_names({GroupVersion("apis/garden.example.org/v1"): bed()})


@pytest.mark.parametrize("name", ["beds", "bed", "Bed", "BEDS"])
def test_resource_by_every_name(name: str) -> None:
    asked = find_kind(BEDS, parse(f"{name}.spec"))
    assert (asked.chosen.kind.kind, [step.name for step in asked.steps]) == ("Bed", ["spec"])


def test_group_may_follow_the_name() -> None:
    asked = find_kind(BEDS, parse("beds.garden.example.org.spec"))
    assert [step.name for step in asked.steps] == ["spec"]


def test_unknown_kind_comes_with_names_like_it() -> None:
    with pytest.raises(UnknownKind) as caught:
        find_kind(BEDS, parse("beed"))
    assert set(caught.value.similar) == {"beds", "Bed"}
    with pytest.raises(UnknownKind, match=r"in garden\.example\.org/v2"):
        find_kind(BEDS, parse("beds"), version="garden.example.org/v2")
    with pytest.raises(InvalidPath):
        find_kind(BEDS, ())


@pytest.mark.parametrize(
    ("text", "chosen", "others"),
    [
        ("deploy", "apis/apps/v1", []),
        ("ev", "api/v1", ["apis/events.k8s.io/v1"]),
        ("events.events.k8s.io.reason", "apis/events.k8s.io/v1", ["api/v1"]),
        ("hpa", "apis/autoscaling/v2", ["apis/autoscaling/v1"]),
        ("DeviceClass", "apis/resource.k8s.io/v1", ["apis/resource.k8s.io/v1beta2"]),
        ("PodList", "api/v1", []),
    ],
)
def test_order_of_discovery_decides(text: str, chosen: str, others: list[str]) -> None:
    asked = find_kind(kind_names(release()), parse(text))
    assert asked.chosen.group_version == chosen
    assert [each.group_version for each in asked.others][: len(others)] == others
