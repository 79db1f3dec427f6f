"""An apiserver or directory, as configured or found in a cluster: how it is reached, and what it may
publish."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import NewType

from specmux_cache.access.server_access import Credentials, ServerAccess, ServerTLS
from specmux_converters.group_versions import GroupVersion

BackendName = NewType("BackendName", str)


class BackendKind(StrEnum):
    """The kind of a backend in the configuration."""

    AUTO = "auto"
    V3 = "v3"
    V2 = "v2"
    DIRECTORY = "directory"
    CRDS = "crds"
    """A directory of CustomResourceDefinition manifests."""

    @property
    def is_directory(self) -> bool:
        return self in (BackendKind.DIRECTORY, BackendKind.CRDS)


def group_of(group_version: GroupVersion) -> str:
    """The group of a key below ``apis/``; for other keys, a string that is no group."""
    return group_version.partition("/")[2].partition("/")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """Facts of a watched cluster about a backend, apart from how it is reached."""

    cluster: str = ""
    """The URL of its apiserver."""
    is_fallback: bool = False
    """Whether it publishes only what no other backend has, without a conflict: the apiserver itself, which
    offers every document of the cluster."""
    excluded: frozenset[GroupVersion] = frozenset()
    """Group-versions that it must not publish."""
    versions: Mapping[str, frozenset[GroupVersion]] = field(
        default_factory=lambda: MappingProxyType({}), hash=False
    )
    """By group, the versions that it may publish; other groups are unrestricted."""
    existing: frozenset[GroupVersion] = frozenset()
    """Group-versions that exist according to the cluster; kept when missing from a root."""
    priorities: Mapping[GroupVersion, tuple[int, int]] = field(
        default_factory=lambda: MappingProxyType({}), hash=False
    )
    """``groupPriorityMinimum`` and ``versionPriority`` of group-versions for which they differ from the
    backend's."""

    servers: tuple[tuple[str, int], ...] = ()
    """Addresses and ports of its servers from its EndpointSlices; empty if these were not read."""

    def allows(self, group_version: GroupVersion) -> bool:
        """Whether the backend may publish it."""
        if group_version in self.excluded:
            return False
        versions = self.versions.get(group_of(group_version)) if self.versions else None
        return versions is None or group_version in versions


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """An apiserver or a directory of documents, as configured or found in a cluster."""

    name: BackendName
    kind: BackendKind = BackendKind.AUTO
    url: str = ""
    """Origin and base path without a trailing slash; empty for a directory."""
    urls: tuple[str, ...] = ()
    """One URL per server, if each is to be contacted; ``url`` is the first."""
    directory: Path | None = None
    kubernetes: str | None = None
    """The release ("1.37") of Kubernetes whose own kinds stand for a directory; that is then of a disk cache
    that may have them with descriptions."""
    priority: int = 0
    """The highest wins a contested group-version; among equals, the name that sorts first."""
    group_versions: frozenset[GroupVersion] | None = None
    """The group-versions that it may publish; None: all that it offers."""
    group_priority: int | None = None
    """``groupPriorityMinimum`` of its APIService: the place of its groups in discovery."""
    version_priority: int | None = None
    """``versionPriority`` of its APIService: the place of its versions within their group."""
    tls: ServerTLS = field(default_factory=ServerTLS)
    credentials: Credentials = field(default_factory=Credentials)
    proxy_url: str | None = field(default=None, repr=False)
    """HTTP proxy to reach it, http:// or https://; may contain a password. Proxies of the environment are not
    used for backends."""
    found: ClusterFacts | None = None
    """None for a backend of the configuration."""

    @property
    def access(self) -> ServerAccess:
        return ServerAccess(url=self.url, tls=self.tls, credentials=self.credentials, proxy=self.proxy_url)

    @property
    def is_fallback(self) -> bool:
        return self.found is not None and self.found.is_fallback

    @property
    def shows_credentials(self) -> bool:
        """Whether requests to it carry credentials."""
        return self.credentials != Credentials() or bool(self.tls.cert_file or self.tls.cert_data)

    @property
    def asked(self) -> Backend:
        """The parts that affect requests to it; the rest is its rank among the others."""
        return replace(self, priority=0, group_priority=None, version_priority=None, found=None)

    def has_content_of(self, other: Backend) -> bool:
        """Whether what is known of ``other`` stays valid, whatever the credentials: the same place, or of
        several servers one that stays."""
        mine, theirs = (set(each.urls or (each.url,)) for each in (self, other))
        is_same_kind = self.kind is other.kind
        is_same_kind &= (self.directory, self.kubernetes) == (other.directory, other.kubernetes)
        return is_same_kind and not mine.isdisjoint(theirs)

    def owns(self, group_version: GroupVersion) -> bool:
        if self.found is not None and not self.found.allows(group_version):
            return False
        return self.group_versions is None or group_version in self.group_versions

    def is_known_to_have(self, group_version: GroupVersion) -> bool:
        return self.found is not None and group_version in self.found.existing

    def priorities_of(self, group_version: GroupVersion) -> tuple[int | None, int | None]:
        """``group_priority`` and ``version_priority`` for this group-version."""
        own = (self.group_priority, self.version_priority)
        return own if self.found is None else self.found.priorities.get(group_version, own)
