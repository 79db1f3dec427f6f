"""What an API group-version serves, as discovery tells it: resources with their subresources. Values only."""

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
"""Of a resource whose server tells none. Clients pass such an entry over, but a null makes some panic
(k/k#118361)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Subresource:
    name: str
    kind: GroupVersionKind
    verbs: tuple[str, ...]
    accepted: tuple[GroupVersionKind, ...] = ()
    """Kinds that may be sent, where they differ from what is answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class APIResource:
    name: str
    """The plural, as it stands in URLs."""
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
    """What a CustomResourceDefinition calls its objects, beside plural and kind."""

    singular: str
    short_names: tuple[str, ...]
    categories: tuple[str, ...]


def split(group_version: GroupVersion) -> tuple[str, str] | None:
    """Group ("" for core) and version; None for a discovery key that is no group-version ("version")."""
    match = _API.fullmatch(group_version)
    if match is None:
        return None
    return ("", match[1]) if match[1] else (match[2], match[3])


def joined(group: str, version: str) -> GroupVersion:
    """The discovery key of a group-version."""
    return GroupVersion(f"apis/{group}/{version}" if group else f"api/{version}")


def api_version(group: str, version: str) -> str:
    """As objects and legacy discovery write it."""
    return f"{group}/{version}" if group else version
