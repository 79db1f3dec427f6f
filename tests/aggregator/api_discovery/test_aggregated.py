"""What a backend's aggregated discovery is taken for."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampling import examples
from specmux_aggregator.api_discovery.aggregated import Lists, parse_aggregated
from specmux_aggregator.api_discovery.legacy import parse_core_versions, parse_groups, parse_resources
from specmux_aggregator.api_discovery.parsing import NOTES_NAMED, BadList
from specmux_converters.document import Limits
from specmux_converters.group_versions import GroupVersion, key_fault
from specmux_converters.resources import NO_KIND, APIResource, GroupVersionKind, Subresource

DEPLOYMENT = GroupVersionKind("apps", "v1", "Deployment")
SCALE = GroupVersionKind("autoscaling", "v1", "Scale")

RESOURCE: dict[str, Any] = {
    "resource": "deployments",
    "responseKind": {"group": "apps", "version": "v1", "kind": "Deployment"},
    "scope": "Namespaced",
    "singularResource": "deployment",
    "verbs": ["create", "get"],
    "shortNames": ["deploy"],
    "categories": ["all"],
    "subresources": [
        {
            "subresource": "scale",
            "responseKind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
            "acceptedTypes": [{"group": "autoscaling", "version": "v1", "kind": "Scale"}],
            "verbs": ["get"],
        }
    ],
}


def listed(*versions: Any, group: str = "apps", api_version: str = "apidiscovery.k8s.io/v2") -> bytes:
    item = {"metadata": {"name": group}, "versions": list(versions)}
    return orjson.dumps({"kind": "APIGroupDiscoveryList", "apiVersion": api_version, "items": [item]})


def parsed(body: bytes, max_group_versions: int = 100) -> Lists:
    return parse_aggregated(body, limits=Limits(), max_group_versions=max_group_versions)


@pytest.mark.parametrize("api_version", ["apidiscovery.k8s.io/v2", "apidiscovery.k8s.io/v2beta1"])
def test_every_member_is_read_when_either_version_tells_it(api_version: str) -> None:
    version = {"version": "v1", "freshness": "Current", "resources": [RESOURCE]}
    lists = parsed(listed(version, api_version=api_version))
    deployments = APIResource(
        name="deployments",
        kind=DEPLOYMENT,
        is_namespaced=True,
        verbs=("create", "get"),
        singular="deployment",
        short_names=("deploy",),
        categories=("all",),
        subresources=(Subresource(name="scale", kind=SCALE, verbs=("get",), accepted=(SCALE,)),),
    )
    assert lists == Lists({"apis/apps/v1": (deployments,)}, frozenset(), ())  # type: ignore[dict-item]


def test_core_group_when_its_name_is_empty() -> None:
    assert list(parsed(listed({"version": "v1"}, group="")).resources) == ["api/v1"]


def test_stale_when_the_backend_says_so_with_or_without_resources() -> None:
    lists = parsed(
        listed(
            {"version": "v1", "freshness": "Stale", "resources": [RESOURCE]},
            {"version": "v2", "freshness": "Stale"},
            {"version": "v3", "freshness": "Current", "resources": None},
        )
    )
    assert lists.stale == {"apis/apps/v1", "apis/apps/v2"}
    assert [len(resources) for resources in lists.resources.values()] == [1, 0, 0]


@pytest.mark.parametrize("kind", [None, {}, {"group": "apps"}, "Deployment", {"kind": 3}])
def test_kind_is_none_that_clients_choke_on_when_the_backend_tells_none(kind: Any) -> None:
    version = {"version": "v1", "resources": [{**RESOURCE, "responseKind": kind}]}
    (resources,) = parsed(listed(version)).resources.values()
    assert resources[0].kind is NO_KIND


@pytest.mark.parametrize(
    ("version", "note"),
    [
        ("v1", 'an entry of "versions" is no object'),
        ({}, "has no version"),
        ({"version": "v1/../x"}, "is no name of a group or version"),
        ({"version": "v1 "}, "is no name of a group or version"),
        ({"version": "v1", "resources": {}}, '"resources" is no array'),
        ({"version": "v1", "resources": [3]}, 'an entry of "resources" is no object'),
        ({"version": "v1", "resources": [{}]}, "without a name of its own"),
        ({"version": "v1", "resources": [{"resource": "a/b"}]}, "without a name of its own"),
        ({"version": "v1", "resources": [RESOURCE, RESOURCE]}, "without a name of its own"),
        ({"version": "v1", "resources": [{**RESOURCE, "verbs": "get"}]}, '"verbs" is no array'),
        ({"version": "v1", "resources": [{**RESOURCE, "verbs": [1]}]}, "empty, repeated or no string"),
        ({"version": "v1", "resources": [{**RESOURCE, "subresources": [{}]}]}, "a subresource without"),
    ],
)
def test_entry_is_a_note_when_it_is_bad_and_the_rest_stays(version: Any, note: str) -> None:
    lists = parsed(listed(version, {"version": "v9", "resources": [RESOURCE]}))
    assert [note in text for text in lists.notes] == [True]
    assert "apis/apps/v9" in lists.resources


def test_first_counts_when_a_group_version_is_there_twice() -> None:
    lists = parsed(listed({"version": "v1", "resources": [RESOURCE]}, {"version": "v1"}))
    assert len(lists.resources["apis/apps/v1"]) == 1  # type: ignore[index]
    assert len(lists.notes) == 1


def test_notes_are_counted_when_there_are_many() -> None:
    notes = parsed(listed(*range(1000))).notes
    assert len(notes) == NOTES_NAMED + 1
    assert notes[-1] == f"and {1000 - NOTES_NAMED} more faults"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"<html>", "not JSON"),
        (b"[]", "not a JSON object"),
        (b'{"kind":"APIGroupList"}', "the kind is not"),
        (b'{"kind":"APIGroupDiscoveryList","kind":"APIGroupDiscoveryList"}', "twice"),
        (listed(api_version="apidiscovery.k8s.io/v3"), "the apiVersion is none of"),
        (listed({"version": "v1"}, {"version": "v2"}, {"version": "v3"}), "more than the 2"),
        (b'{"a":' * 100 + b"1" + b"}" * 100, "deep"),
    ],
)
def test_document_is_refused_when_it_is_none(body: bytes, reason: str) -> None:
    with pytest.raises(BadList, match=reason):
        parse_aggregated(body, limits=Limits(max_depth=50), max_group_versions=2)


def test_document_is_refused_when_it_is_too_large() -> None:
    with pytest.raises(BadList, match="more than the 100 allowed"):
        parse_aggregated(b" " * 101, limits=Limits(max_bytes=100), max_group_versions=2)


NAMES = [
    "metadata",
    "name",
    "versions",
    "version",
    "freshness",
    "resources",
    "resource",
    "responseKind",
    "kind",
    "scope",
    "verbs",
    "shortNames",
    "categories",
    "subresources",
    "subresource",
    "acceptedTypes",
    "items",
    "groups",
    "namespaced",
    "group",
]

scalars = (
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4) | st.sampled_from(["v1", "a/b"])
)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=30,
)


@given(members=st.dictionaries(st.sampled_from(["items", "groups", "versions", "resources"]), json_values))
@examples(300)
def test_hostile_content_ends_in_lists_or_a_refusal(members: dict[str, Any]) -> None:
    aggregated = {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", **members}
    lists = parsed(orjson.dumps(aggregated))
    assert all(key_fault(key) is None for key in lists.resources)
    limits = Limits()
    keys, _ = parse_core_versions(
        orjson.dumps({**members, "kind": "APIVersions"}), limits=limits, max_group_versions=9
    )
    groups, _ = parse_groups(
        orjson.dumps({**members, "kind": "APIGroupList"}), limits=limits, max_group_versions=9
    )
    assert all(key_fault(key) is None for key in (*keys, *groups))
    resources, _ = parse_resources(
        orjson.dumps({**members, "kind": "APIResourceList", "groupVersion": "v1"}),
        GroupVersion("api/v1"),
        limits=limits,
    )
    assert len({resource.name for resource in resources}) == len(resources)
