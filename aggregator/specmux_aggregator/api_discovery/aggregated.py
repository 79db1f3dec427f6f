"""Parse the aggregated form of discovery (KEP-3352, ``apidiscovery.k8s.io``) of a backend. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from specmux_aggregator.api_discovery.parsing import (
    BadList,
    Complaints,
    group_version_in,
    kind_in,
    objects,
    read_document,
    text,
    texts,
)
from specmux_converters.document import Document, Limits
from specmux_converters.group_versions import GroupVersion
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.resources import APIResource, Resources, Subresource, is_name

KIND: Final = "APIGroupDiscoveryList"
API_VERSIONS: Final = ("apidiscovery.k8s.io/v2", "apidiscovery.k8s.io/v2beta1")
"""Versions with the same structure."""


@dataclass(frozen=True, slots=True)
class Lists:
    """The content of one document."""

    resources: Mapping[GroupVersion, Resources]
    stale: frozenset[GroupVersion]
    """Group-versions that the backend itself reports as stale; their resources may be missing."""
    notes: tuple[str, ...]


def parse_aggregated(body: bytes, *, limits: Limits, max_group_versions: int) -> Lists:
    """Raises BadList for another document, or one that names more group-versions than allowed."""
    document = read_document(body, kind=KIND, limits=limits)
    if document.get("apiVersion") not in API_VERSIONS:
        raise BadList(f"the apiVersion is none of {', '.join(API_VERSIONS)}")
    notes = Complaints()
    found: dict[GroupVersion, Resources] = {}
    stale: set[GroupVersion] = set()
    for item in objects(document, "items", "the list", notes):
        metadata = item.get("metadata")
        group = text(metadata, "name") if isinstance(metadata, dict) else ""
        for version in objects(item, "versions", group, notes):
            key = group_version_in(group, text(version, "version"), notes)
            if key is None:
                continue
            if key in found:
                notes.add(key, "is there twice; the first counts")
                continue
            found[key] = tuple(_resources(version, key, notes))
            if text(version, "freshness") == "Stale":
                stale.add(key)
            if len(found) > max_group_versions:
                raise BadList(f"more than the {max_group_versions} group-versions allowed")
    return Lists(found, frozenset(stale), notes.all())


def _resources(version: Document, key: GroupVersion, notes: Complaints) -> list[APIResource]:
    found: dict[str, APIResource] = {}
    for item in objects(version, "resources", key, notes):
        name = item.get("resource")
        if not is_name(name) or name in found:
            notes.add(key, "a resource without a name of its own is left out")
            continue
        where = f"{key} {name}"
        found[name] = APIResource(
            name=name,
            kind=kind_in(item.get("responseKind")),
            is_namespaced=text(item, "scope") == "Namespaced",
            verbs=texts(item, "verbs", where, notes),
            singular=text(item, "singularResource"),
            short_names=texts(item, "shortNames", where, notes),
            categories=texts(item, "categories", where, notes),
            subresources=_subresources(item, where, notes),
        )
    return list(found.values())


def _subresources(resource: Document, where: str, notes: Complaints) -> tuple[Subresource, ...]:
    found: dict[str, Subresource] = {}
    for item in objects(resource, "subresources", where, notes):
        name = item.get("subresource")
        if not is_name(name) or name in found:
            notes.add(where, "a subresource without a name of its own is left out")
            continue
        accepted = (kind_in(kind) for kind in objects(item, "acceptedTypes", where, notes))
        found[name] = Subresource(
            name=name,
            kind=kind_in(item.get("responseKind")),
            verbs=texts(item, "verbs", where, notes),
            accepted=tuple(accepted),
        )
    return tuple(found.values())
