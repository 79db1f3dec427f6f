"""The resources of an API group-version, as listed by discovery, with their subresources. Values only."""

from __future__ import annotations

from typing import Any, Final, TypeGuard

from specmux_converters.group_versions import api_version
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.lazy.patterns import pattern

_NAME: Final = pattern(r"[A-Za-z0-9](?:[A-Za-z0-9._~:-]{0,251}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True, order=True)
class GroupVersionKind:
    """The kind of an object; the group "" is the core group."""

    group: str
    version: str
    kind: str

    @property
    def api_version(self) -> str:
        """The group-version as in manifests: ``apps/v1``."""
        return api_version(self.group, self.version)


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


def is_name(value: Any) -> TypeGuard[str]:
    """Whether it fits into one segment of a URL; names of groups, versions and resources are restricted
    further."""
    return isinstance(value, str) and _NAME.fullmatch(value) is not None
