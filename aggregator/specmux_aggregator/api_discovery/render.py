"""A Directory in the aggregated and legacy forms, as JSON trees. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from specmux_aggregator.api_discovery.directory import Directory, Group, ListedVersion
from specmux_converters.group_versions import api_version, split
from specmux_converters.resources import APIResource, GroupVersionKind, Resources, Subresource

DISCOVERY_GROUP: Final = "apidiscovery.k8s.io"

UNVERSIONED_GROUPS: Final = ("", "extensions")
"""Groups whose lists have no apiVersion (apiserver, endpoints/discovery/version.go, keepUnversioned)."""

Tree = dict[str, Any]


def aggregated_list(groups: tuple[Group, ...], *, version: str) -> Tree:
    """An APIGroupDiscoveryList; v2 and v2beta1 have the same structure (KEP-3352)."""
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"{DISCOVERY_GROUP}/{version}",
        "metadata": {},
        "items": [
            {
                "metadata": {"name": group.name} if group.name else {},
                "versions": [_aggregated_version(version) for version in group.versions],
            }
            for group in groups
        ],
    }


def core_versions(directory: Directory) -> Tree:
    """The APIVersions at ``/api``."""
    core = directory.core
    return {
        "kind": "APIVersions",
        "versions": [] if core is None else [version.name for version in core.versions],
        # The preferred address for a client is unknown here; it keeps the one that it used.
        "serverAddressByClientCIDRs": [],
    }


def group_list(directory: Directory) -> Tree:
    """The APIGroupList at ``/apis``."""
    groups = [_group_fields(group) for group in directory.groups]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}


def group_tree(group: Group) -> Tree:
    """The APIGroup at ``/apis/<group>``."""
    return {"kind": "APIGroup", **_write_version(group.name), **_group_fields(group)}


def resource_list(version: ListedVersion) -> Tree:
    """The APIResourceList at ``/apis/<group>/<version>``."""
    parts = split(version.group_version)
    assert parts is not None
    return {
        "kind": "APIResourceList",
        **_write_version(parts[0]),
        "groupVersion": api_version(*parts),
        "resources": [*_legacy_resources(version.resources, parts)],
    }


def _write_version(group: str) -> Tree:
    return {} if group in UNVERSIONED_GROUPS else {"apiVersion": "v1"}


def _aggregated_version(version: ListedVersion) -> Tree:
    tree: Tree = {"version": version.name}
    if version.resources:
        tree["resources"] = [_aggregated_resource(resource) for resource in version.resources]
    tree["freshness"] = version.freshness.value
    return tree


def _aggregated_resource(resource: APIResource) -> Tree:
    tree: Tree = {
        "resource": resource.name,
        "responseKind": _kind(resource.kind),
        "scope": "Namespaced" if resource.is_namespaced else "Cluster",
        "singularResource": resource.singular,
        "verbs": resource.verbs,
    }
    if resource.short_names:
        tree["shortNames"] = resource.short_names
    if resource.categories:
        tree["categories"] = resource.categories
    if resource.subresources:
        tree["subresources"] = [_aggregated_subresource(each) for each in resource.subresources]
    return tree


def _aggregated_subresource(subresource: Subresource) -> Tree:
    tree: Tree = {"subresource": subresource.name, "responseKind": _kind(subresource.kind)}
    if subresource.accepted:
        tree["acceptedTypes"] = [_kind(kind) for kind in subresource.accepted]
    tree["verbs"] = subresource.verbs
    return tree


def _kind(kind: GroupVersionKind) -> Tree:
    return {"group": kind.group, "version": kind.version, "kind": kind.kind}


def _group_fields(group: Group) -> Tree:
    return {
        "name": group.name,
        "versions": [_version_fields(group, version) for version in group.versions],
        "preferredVersion": _version_fields(group, group.preferred),
    }


def _version_fields(group: Group, version: ListedVersion) -> Tree:
    return {"groupVersion": api_version(group.name, version.name), "version": version.name}


def _legacy_resources(resources: Resources, parts: tuple[str, str]) -> Iterator[Tree]:
    for resource in resources:
        if resource.kind.kind:
            tree = _legacy(resource.name, resource.kind, resource.verbs, resource, parts)
            tree["singularName"] = resource.singular
            if resource.short_names:
                tree["shortNames"] = resource.short_names
            if resource.categories:
                tree["categories"] = resource.categories
            yield tree
        for item in resource.subresources:
            yield _legacy(f"{resource.name}/{item.name}", item.kind, item.verbs, resource, parts)


def _legacy(
    name: str, kind: GroupVersionKind, verbs: tuple[str, ...], of: APIResource, parts: tuple[str, str]
) -> Tree:
    tree: Tree = {"name": name, "singularName": "", "namespaced": of.is_namespaced}
    if kind.kind and (kind.group, kind.version) != parts:
        # Only where they differ from the list's. An apiserver omits both for its own kinds in aggregated
        # discovery, and an empty one is left out (kr8s takes it for a version).
        tree |= {name: value for name, value in (("group", kind.group), ("version", kind.version)) if value}
    tree["kind"] = kind.kind
    tree["verbs"] = verbs
    return tree
