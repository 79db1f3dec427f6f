"""Short names and categories of kube-apiserver's own resources.

No document contains them. They are those of Kubernetes 1.35 (``pkg/registry/*/*/storage``) and of
PodSecurityPolicy; other resources have none.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pkgutil import get_data
from typing import Final, TypeAlias

from specmux_converters.document import Document
from specmux_converters.group_versions import GroupVersion, split
from specmux_converters.json_values import members
from specmux_converters.resources import ResourceNames, Resources
from specmux_converters.synthesis import name_resources, synthesise

Names: TypeAlias = Mapping[str, ResourceNames]
_NO_NAMES: Final[Names] = {}


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
