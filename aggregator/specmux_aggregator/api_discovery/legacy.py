"""Parse the legacy form of discovery (APIVersions, APIGroupList, APIResourceList) of a backend. Pure."""

from __future__ import annotations

from dataclasses import field, replace

from specmux_aggregator.api_discovery.parsing import (
    BadList,
    Complaints,
    group_version_in,
    objects,
    read_document,
    text,
    texts,
)
from specmux_converters.document import Document, Limits
from specmux_converters.group_versions import GroupVersion, api_version, split
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.resources import (
    NO_KIND,
    APIResource,
    GroupVersionKind,
    Resources,
    Subresource,
    is_name,
)


def parse_core_versions(
    body: bytes, *, limits: Limits, max_group_versions: int
) -> tuple[tuple[GroupVersion, ...], tuple[str, ...]]:
    """The group-versions of an APIVersions, and notes. Raises BadList."""
    document = read_document(body, kind="APIVersions", limits=limits)
    notes = Complaints()
    versions = texts(document, "versions", "/api", notes)
    if len(versions) > max_group_versions:
        raise BadList(f"more than the {max_group_versions} group-versions allowed")
    keys = [group_version_in("", version, notes) for version in versions]
    return tuple(key for key in keys if key is not None), notes.all()


def parse_groups(
    body: bytes, *, limits: Limits, max_group_versions: int
) -> tuple[tuple[GroupVersion, ...], tuple[str, ...]]:
    """The group-versions of an APIGroupList, and notes. Raises BadList."""
    document = read_document(body, kind="APIGroupList", limits=limits)
    notes = Complaints()
    found: dict[GroupVersion, None] = {}
    for item in objects(document, "groups", "/apis", notes):
        group = text(item, "name")
        if not group:
            notes.add("/apis", "a group without a name is left out")
            continue
        for version in objects(item, "versions", group, notes):
            key = group_version_in(group, text(version, "version"), notes)
            if key is not None:
                found[key] = None
            if len(found) > max_group_versions:
                raise BadList(f"more than the {max_group_versions} group-versions allowed")
    return tuple(found), notes.all()


def parse_resources(
    body: bytes, group_version: GroupVersion, *, limits: Limits
) -> tuple[Resources, tuple[str, ...]]:
    """The resources of an APIResourceList, subresources under theirs, and notes. Raises BadList."""
    document = read_document(body, kind="APIResourceList", limits=limits)
    parts = split(group_version)
    if parts is None or text(document, "groupVersion") != api_version(*parts):
        raise BadList(f"lists another group-version than {group_version}")
    notes = Complaints()
    drafts: dict[str, _Draft] = {}
    for item in objects(document, "resources", group_version, notes):
        name, slash, subresource = text(item, "name").partition("/")
        where = f"{group_version} {name}{slash}{subresource}"
        if not is_name(name) or (slash and not is_name(subresource)):
            notes.add(group_version, "a resource whose name is none is left out")
            continue
        draft = drafts.setdefault(name, _Draft(item.get("namespaced") is True))
        kind = _kind(item, parts)
        verbs = texts(item, "verbs", where, notes)
        if (subresource in draft.subresources) if slash else (draft.main is not None):
            notes.add(where, "is there twice; the first counts")
        elif slash:
            draft.subresources[subresource] = Subresource(name=subresource, kind=kind, verbs=verbs)
        else:
            draft.is_namespaced = item.get("namespaced") is True
            draft.main = APIResource(
                name=name,
                kind=kind,
                is_namespaced=draft.is_namespaced,
                verbs=verbs,
                singular=text(item, "singularName"),
                short_names=texts(item, "shortNames", where, notes),
                categories=texts(item, "categories", where, notes),
            )
    return tuple(draft.resource(name) for name, draft in drafts.items()), notes.all()


@dataclass(slots=True)
class _Draft:
    """A resource while its subresources, which may precede it, are collected."""

    is_namespaced: bool
    main: APIResource | None = None
    subresources: dict[str, Subresource] = field(default_factory=dict)

    def resource(self, name: str) -> APIResource:
        # Subresources without a resource are attached to an entry that clients ignore.
        main = self.main or APIResource(name=name, kind=NO_KIND, is_namespaced=self.is_namespaced, verbs=())
        return replace(main, subresources=tuple(self.subresources.values()))


def _kind(item: Document, parts: tuple[str, str]) -> GroupVersionKind:
    """Group and version are present only where they differ from those of the list."""
    kind = text(item, "kind")
    if not kind:
        return NO_KIND
    return GroupVersionKind(text(item, "group") or parts[0], text(item, "version") or parts[1], kind)
