"""What a backend's legacy discovery is taken for."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from specmux_aggregator.api_discovery.legacy import parse_core_versions, parse_groups, parse_resources
from specmux_aggregator.api_discovery.parsing import BadList
from specmux_converters.document import Limits
from specmux_converters.group_versions import GroupVersion
from specmux_converters.resources import NO_KIND, GroupVersionKind

APPS = GroupVersion("apis/apps/v1")
LIMITS = Limits()


def resource_list(*resources: Any, group_version: str = "apps/v1") -> bytes:
    return orjson.dumps(
        {"kind": "APIResourceList", "groupVersion": group_version, "resources": list(resources)}
    )


def deployments(**fields: Any) -> dict[str, Any]:
    return {"name": "deployments", "namespaced": True, "kind": "Deployment", "verbs": ["get"], **fields}


def test_core_versions() -> None:
    body = orjson.dumps({"kind": "APIVersions", "versions": ["v1", "x/y"]})
    assert parse_core_versions(body, limits=LIMITS, max_group_versions=9) == (
        ("api/v1",),
        ("x/y: is no name of a group or version",),
    )


def test_groups() -> None:
    body = orjson.dumps(
        {
            "kind": "APIGroupList",
            "groups": [
                {"name": "apps", "versions": [{"version": "v1"}, {"version": "v1beta1"}, {}]},
                {"versions": [{"version": "v1"}]},
            ],
        }
    )
    found, notes = parse_groups(body, limits=LIMITS, max_group_versions=10)
    assert found == ("apis/apps/v1", "apis/apps/v1beta1")
    assert len(notes) == 2
    with pytest.raises(BadList, match="more than the 1"):
        parse_groups(body, limits=LIMITS, max_group_versions=1)


@pytest.mark.parametrize("is_first", [True, False])
def test_subresource_lies_under_its_resource_when_it_comes_before_or_after(is_first: bool) -> None:
    scale = {
        "name": "deployments/scale",
        "namespaced": True,
        "group": "autoscaling",
        "version": "v1",
        "kind": "Scale",
        "verbs": ["get", "update"],
    }
    main = deployments(singularName="deployment", shortNames=["deploy"], categories=["all"])
    (found,), notes = parse_resources(
        resource_list(*([scale, main] if is_first else [main, scale])), APPS, limits=LIMITS
    )
    assert notes == ()
    assert found.kind == GroupVersionKind("apps", "v1", "Deployment")
    assert (found.singular, found.short_names, found.categories) == ("deployment", ("deploy",), ("all",))
    (subresource,) = found.subresources
    assert (subresource.name, subresource.kind) == ("scale", GroupVersionKind("autoscaling", "v1", "Scale"))
    assert subresource.verbs == ("get", "update")


def test_resource_without_a_kind_when_only_its_subresource_is_listed() -> None:
    (found,), _ = parse_resources(
        resource_list({"name": "things/status", "namespaced": True, "kind": "Thing"}), APPS, limits=LIMITS
    )
    assert (found.name, found.kind, found.is_namespaced, found.verbs) == ("things", NO_KIND, True, ())


@pytest.mark.parametrize(
    "resource",
    [3, {}, deployments(name="a/b/c"), deployments(name="/x"), deployments(name="deployments/")],
)
def test_entry_is_a_note_when_it_is_bad_and_the_rest_stays(resource: Any) -> None:
    found, notes = parse_resources(resource_list(resource, deployments()), APPS, limits=LIMITS)
    assert ([item.name for item in found], len(notes)) == (["deployments"], 1)


def test_first_counts_when_a_resource_is_there_twice() -> None:
    found, notes = parse_resources(
        resource_list(deployments(), deployments(kind="Other")), APPS, limits=LIMITS
    )
    assert ([item.kind.kind for item in found], len(notes)) == (["Deployment"], 1)


@pytest.mark.parametrize("body", [b"{}", b'{"kind":"Status"}', resource_list(group_version="apps/v2")])
def test_document_is_refused_when_it_is_not_what_was_asked_for(body: bytes) -> None:
    with pytest.raises(BadList):
        parse_resources(body, APPS, limits=LIMITS)
