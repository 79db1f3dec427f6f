"""Derive resources from an OpenAPI v3 document of Kubernetes: discovery for backends without it. Pure.

Resources follow from paths: plural and scope from segments, verbs from operations (``x-kubernetes-action``),
kinds from ``x-kubernetes-group-version-kind``. Documents lack short names and categories; manifests of
CustomResourceDefinitions add them (``name_resources``), a table those of kube-apiserver's own resources: they
are of Kubernetes 1.35 (``pkg/registry/*/*/storage``) and of PodSecurityPolicy, other resources have none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from functools import cache
from pkgutil import get_data
from typing import Final, TypeAlias

from specmux_converters.document import Document
from specmux_converters.group_versions import GroupVersion, split
from specmux_converters.json_values import array, mapping, members, text, texts
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.operations import COLLECTION_METHODS, METHODS, VERBS, kinds_named_by
from specmux_converters.references import component_of, resolve_part, schemas_of
from specmux_converters.resources import (
    NO_KIND,
    APIResource,
    GroupVersionKind,
    ResourceNames,
    Resources,
    Subresource,
)

_CUSTOM_VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
"""The order in which an apiserver lists the verbs of custom resources; those of its own kinds are sorted
(apiextensions-apiserver, customresource_discovery_controller.go)."""


Names: TypeAlias = Mapping[str, ResourceNames]
_NO_NAMES: Final[Names] = {}


@dataclass(frozen=True, slots=True)
class ResourcePath:
    """The meaning of a path below a group-version."""

    resource: str
    subresource: str
    is_namespaced: bool
    is_collection: bool
    is_watch: bool
    """Whether it is the deprecated form of watching, by path."""


@dataclass(slots=True)
class _Draft:
    """A resource or subresource while its paths are being read."""

    verbs: set[str] = field(default_factory=set)
    kind: GroupVersionKind = NO_KIND
    is_namespaced: bool = False
    takes_watch: bool = False
    """Whether its list has the parameter."""
    answers: set[GroupVersionKind] = field(default_factory=set)
    """Kinds in the answers of a subresource, by their components."""


def synthesise(document: Document, group_version: GroupVersion) -> Resources:
    """The resources of a parsed document, by name. Paths without a kind are ignored."""
    drafts: dict[str, dict[str, _Draft]] = {}
    has_watch_paths = False
    for path, item in members(document.get("paths")):
        place = place_of(path, f"/{group_version}/")
        if place is None:
            continue
        has_watch_paths |= place.is_watch
        draft = drafts.setdefault(place.resource, {}).setdefault(place.subresource, _Draft())
        draft.is_namespaced |= place.is_namespaced
        for method, operation in members(item):
            if method in METHODS:
                _add(draft, place, method, operation, _parameter_names(document, item, operation))
                draft.answers |= _answered_kinds(document, operation) if place.subresource else set()
    return tuple(
        APIResource(
            name=name,
            kind=parts[""].kind,
            is_namespaced=any(draft.is_namespaced for draft in parts.values()),
            verbs=_verbs(parts[""], has_watch_paths),
            singular=parts[""].kind.kind.lower(),
            subresources=_subresources(parts),
        )
        for name, parts in sorted(drafts.items())
        if "" in parts and parts[""].kind is not NO_KIND
    )


def name_resources(resources: Resources, names: Mapping[str, ResourceNames]) -> Resources:
    """The resources with the names from their definitions; ``names``: by plural."""
    return tuple(
        replace(
            resource,
            singular=own.singular or resource.singular,
            short_names=own.short_names,
            categories=own.categories,
        )
        if (own := names.get(resource.name)) is not None
        else resource
        for resource in resources
    )


def names_of(manifest: Document) -> tuple[str, ResourceNames] | None:
    """The plural and further names in the manifest of a CustomResourceDefinition; None without a plural."""
    names = mapping(manifest.get("spec")).get("names")
    plural = mapping(names).get("plural")
    if not isinstance(names, dict) or not isinstance(plural, str):
        return None
    return plural, ResourceNames(
        text(names.get("singular")),
        texts(names.get("shortNames")),
        texts(names.get("categories")),
    )


def place_of(path: str, prefix: str) -> ResourcePath | None:
    """The meaning of a path; None if it is not a resource. ``prefix``: "/apis/apps/v1/"."""
    if not path.startswith(prefix):
        return None
    segments = path[len(prefix) :].rstrip("/").split("/")
    is_watch = len(segments) > 1 and segments[0] == "watch"
    segments = segments[is_watch:]
    # "/api/v1/namespaces/{name}" is a namespace, ".../{namespace}/pods" is inside one.
    is_namespaced = len(segments) > 2 and segments[:2] == ["namespaces", "{namespace}"]
    match segments[2:] if is_namespaced else segments:
        case [resource] if _is_literal(resource):
            return ResourcePath(resource, "", is_namespaced, is_collection=True, is_watch=is_watch)
        case [resource, parameter] if _is_literal(resource) and not _is_literal(parameter):
            return ResourcePath(resource, "", is_namespaced, is_collection=False, is_watch=is_watch)
        case [resource, parameter, subresource, *_] if (
            _is_literal(resource) and not _is_literal(parameter) and _is_literal(subresource)
        ):
            return ResourcePath(resource, subresource, is_namespaced, is_collection=False, is_watch=is_watch)
    return None


def _is_literal(segment: str) -> bool:
    return bool(segment) and "{" not in segment


def _add(
    draft: _Draft, place: ResourcePath, method: str, operation: Document, parameters: Iterable[str]
) -> None:
    action = operation.get("x-kubernetes-action")
    by_method = COLLECTION_METHODS if place.is_collection else METHODS
    verb = VERBS.get(action) if isinstance(action, str) else None
    verb = "watch" if place.is_watch else verb or by_method.get(method)
    if verb is None:
        return
    draft.verbs.add(verb)
    if verb == "list" and "watch" in parameters:
        draft.takes_watch = True
    kind = next((GroupVersionKind(*each) for each in kinds_named_by(operation) if each[2]), NO_KIND)
    # Deleting returns a Status in some documents; reading and writing determine the kind.
    if kind is not NO_KIND and (draft.kind is NO_KIND or verb in ("get", "list")):
        draft.kind = kind


def _verbs(draft: _Draft, has_watch_paths: bool) -> tuple[str, ...]:
    # Documents of built-in kinds have the deprecated paths for watching; those of custom ones only the
    # parameter, which built-in kinds have even if they cannot be watched (componentstatuses).
    if draft.takes_watch and not has_watch_paths:
        found = {*draft.verbs, "watch"}
        return (*(verb for verb in _CUSTOM_VERBS if verb in found), *sorted(found.difference(_CUSTOM_VERBS)))
    return tuple(sorted(draft.verbs))


def _subresources(parts: Mapping[str, _Draft]) -> tuple[Subresource, ...]:
    # Operations of custom resources state the resource's own kind even if they return another: ``scale``
    # returns Scale of autoscaling/v1 (apiextensions-apiserver, builder.go, RouteMetaGVK), and a client's
    # decoder refuses anything else.
    return tuple(
        Subresource(
            name=name,
            kind=next(iter(draft.answers)) if len(draft.answers) == 1 else draft.kind,
            verbs=tuple(sorted(draft.verbs)),
        )
        for name, draft in sorted(parts.items())
        if name
    )


def _answered_kinds(document: Document, operation: Document) -> set[GroupVersionKind]:
    """The kinds of the components in successful responses; ambiguous components are ignored."""
    schemas = schemas_of(document)
    found: set[GroupVersionKind] = set()
    for status, response in members(operation.get("responses")):
        for _, content in members(response.get("content") if status.startswith("2") else None):
            schema = content.get("schema")
            name = component_of(schema) if isinstance(schema, dict) else None
            kinds = kinds_named_by(schemas.get(name) if name is not None else None)
            found |= {GroupVersionKind(*kind) for kind in kinds if len(kinds) == 1 and kind[2]}
    return found


def _parameter_names(document: Document, *holders: Document) -> Iterator[str]:
    for holder in holders:
        for parameter in array(holder.get("parameters")):
            name = resolve_part(document, parameter).get("name")
            if isinstance(name, str):
                yield name


def built_in_names(group: str) -> Mapping[str, ResourceNames]:
    """The names by plural; empty for a group that does not belong to Kubernetes."""
    return _by_group().get(group, _NO_NAMES)


@cache
def _by_group() -> Mapping[str, Mapping[str, ResourceNames]]:
    """A line has the resource with its group, its short names, and its categories."""
    found: dict[str, dict[str, ResourceNames]] = {}
    for line in (get_data(__package__, "built_in_names.txt") or b"").decode().splitlines():
        resource, short, *categories = line.split()
        plural, _, group = resource.partition(".")
        short_names = () if short == "-" else tuple(short.split(","))
        names = ResourceNames("", short_names, tuple(categories))
        found.setdefault(group, {})[plural] = names
    return found


def resources_of(document: Document, group_version: GroupVersion, more: Names = _NO_NAMES) -> Resources:
    """The resources of a document, whatever the order of its keys, with Kubernetes' own names and ``more``,
    by plural."""
    parts = split(group_version)
    paths = {path: dict(sorted(item.items())) for path, item in sorted(members(document.get("paths")))}
    names = {**(built_in_names(parts[0]) if parts else {}), **more}
    return name_resources(synthesise({**document, "paths": paths}, group_version), names)
