"""Client and service read the same kinds from aggregated discovery, of whatever form."""

from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampling import examples
from specmux_aggregator.api_discovery.aggregated import parse_aggregated
from specmux_cache.reading.resources import KindResource, resources_in
from specmux_converters.document import Limits
from specmux_converters.group_versions import split
from specmux_converters.resources import GroupVersionKind

Kinds = dict[GroupVersionKind, KindResource]


def resource(name: Any, kind: Any, **more: Any) -> dict[str, Any]:
    stated = {"group": "apps", "version": "v1", "kind": kind}
    return {"resource": name, "responseKind": stated, "scope": "Namespaced", "verbs": ["get"]} | more


def listing(*resources: Any, group: Any = "apps", version: Any = "v1") -> dict[str, Any]:
    return {"metadata": {"name": group}, "versions": [{"version": version, "resources": list(resources)}]}


ITEMS: dict[str, list[Any]] = {
    "none": [],
    "plain": [listing(resource("deployments", "Deployment", shortNames=["deploy"]))],
    "core": [listing(resource("nodes", "Node", scope="Cluster"), group="")],
    "two resources of a kind": [listing(resource("pods", "Pod"), resource("oldpods", "Pod"))],
    "a name twice": [listing(resource("pods", "Pod"), resource("pods", "Other"))],
    "without a kind": [listing(resource("pods", ""), resource("nodes", None), {"resource": "x"})],
    "responseKind that is none": [listing({"resource": "pods", "responseKind": "Pod"})],
    "names that fit no URL": [listing(resource("a/b", "A"), resource("", "B"), resource(3, "C"))],
    "entries that are none": [None, 3, listing(None, "x", resource("pods", "Pod")), {"versions": {}}],
    "verbs that are none": [listing(resource("pods", "Pod", verbs=["get", "get", 3, "", "list"]))],
    "verbs in no list": [listing(resource("pods", "Pod", verbs="get", shortNames={"a": 1}))],
    "a group-version twice": [listing(resource("pods", "Pod")), listing(resource("nodes", "Node"))],
    "no version": [listing(resource("pods", "Pod"), version=""), {"metadata": {"name": "a"}}],
    "a version that fits no URL": [listing(resource("pods", "Pod"), version="v1/../v2")],
    "a group that fits no URL": [listing(resource("pods", "Pod"), group="a b")],
    "metadata that is none": [{**listing(resource("pods", "Pod")), "metadata": "apps"}],
    "a kind of another group": [
        listing(
            {"resource": "scales", "responseKind": {"group": "autoscaling", "version": "v1", "kind": "S"}}
        )
    ],
}


def document(items: Any, version: str = "v2") -> bytes:
    return orjson.dumps(
        {"kind": "APIGroupDiscoveryList", "apiVersion": f"apidiscovery.k8s.io/{version}", "items": items}
    )


def read_by_service(body: bytes) -> Kinds:
    found: Kinds = {}
    lists = parse_aggregated(body, limits=Limits(), max_group_versions=1000)
    for key, resources in lists.resources.items():
        group, version = split(key) or pytest.fail(key)
        for each in resources:
            if each.kind.kind:
                served = KindResource(each.name, each.is_namespaced, each.verbs, each.short_names)
                found.setdefault(GroupVersionKind(group, version, each.kind.kind), served)
    return found


@pytest.mark.parametrize("version", ["v2", "v2beta1"])
@pytest.mark.parametrize("name", ITEMS)
def test_both_read_the_same_kinds(name: str, version: str) -> None:
    body = document(ITEMS[name], version)
    assert resources_in(body) == read_by_service(body)


@pytest.mark.parametrize(
    "body",
    [b"", b"[]", b"{}", b'{"kind":"APIVersions"}', document([], "v3"), b'{"kind":"APIGroupDiscoveryList"}'],
)
def test_both_refuse_another_document(body: bytes) -> None:
    for read in (resources_in, read_by_service):
        with pytest.raises(ValueError):
            read(body)


@examples(200)
@given(st.data())
def test_both_read_the_same_of_a_damaged_list(data: st.DataObject) -> None:
    """One value somewhere in a list is replaced by another."""
    items = copy.deepcopy([each for group in ITEMS.values() for each in group])
    node: Any = items
    while isinstance(node, (list, dict)) and node:
        keys = range(len(node)) if isinstance(node, list) else sorted(node)
        parent, key = node, data.draw(st.sampled_from(list(keys)))
        node = parent[key]
        if data.draw(st.booleans()):
            break
    parent[key] = data.draw(st.sampled_from([None, "", "x", "a/b", 3, [], ["y"], {}, {"kind": "Z"}]))
    assert resources_in(document(items)) == read_by_service(document(items))
