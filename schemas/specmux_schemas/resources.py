"""The resources of an API group-version, as listed by discovery, with their subresources. Values only."""

from __future__ import annotations

import re
from typing import Final

from specmux_converters.deferred_dataclasses import dataclass
from specmux_converters.group_versions import GroupVersion

_API: Final = re.compile(r"api/([^/]+)|apis/([^/]+)/([^/]+)")


@dataclass(frozen=True, slots=True, order=True)
class GroupVersionKind:
    """The kind of an object; the group "" is the core group."""

    group: str
    version: str
    kind: str


NO_KIND: Final = GroupVersionKind("", "", "")
"""The kind of a resource whose server states none. Clients skip such an entry, while null makes some of them
panic (k/k#118361)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subresource:
    name: str
    kind: GroupVersionKind
    verbs: tuple[str, ...]
    accepted: tuple[GroupVersionKind, ...] = ()
    """Kinds accepted in requests, if they differ from the kind of answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class APIResource:
    name: str
    """The plural, as used in URLs."""
    kind: GroupVersionKind
    is_namespaced: bool
    verbs: tuple[str, ...]
    singular: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()


Resources = tuple[APIResource, ...]


@dataclass(frozen=True, slots=True)
class ResourceNames:
    """Further names in a CustomResourceDefinition, beside plural and kind."""

    singular: str
    short_names: tuple[str, ...]
    categories: tuple[str, ...]


def split(group_version: GroupVersion) -> tuple[str, str] | None:
    """Group ("" for core) and version; None for a discovery key such as "version"."""
    match = _API.fullmatch(group_version)
    if match is None:
        return None
    return ("", match[1]) if match[1] else (match[2], match[3])


def joined(group: str, version: str) -> GroupVersion:
    """The discovery key of a group-version."""
    return GroupVersion(f"apis/{group}/{version}" if group else f"api/{version}")


def api_version(group: str, version: str) -> str:
    """The form used in objects and legacy discovery."""
    return f"{group}/{version}" if group else version
