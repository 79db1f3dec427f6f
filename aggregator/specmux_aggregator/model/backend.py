"""One apiserver or directory, as configured or found in a cluster: how it is reached, what it may offer."""

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
    """What the configuration says a backend is."""

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
    """The group of one below ``apis/``; what is no group for others."""
    return group_version.partition("/")[2].partition("/")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterFacts:
    """What a watched cluster says of a backend, beside how it is reached."""

    cluster: str = ""
    """The URL of its apiserver."""
    is_fallback: bool = False
    """It publishes what no other backend has, and this is no conflict: the apiserver itself, which offers
    everybody's documents."""
    excluded: frozenset[GroupVersion] = frozenset()
    """What it must not publish."""
    versions: Mapping[str, frozenset[GroupVersion]] = field(
        default_factory=lambda: MappingProxyType({}), hash=False
    )
    """By group, all that it is to publish of it; of other groups whatever it offers."""
    existing: frozenset[GroupVersion] = frozenset()
    """What its cluster says that there is: not gone when it is missing from a root."""
    priorities: Mapping[GroupVersion, tuple[int, int]] = field(
        default_factory=lambda: MappingProxyType({}), hash=False
    )
    """``groupPriorityMinimum`` and ``versionPriority`` of single group-versions, where they are not the
    backend's."""

    servers: tuple[tuple[str, int], ...] = ()
    """Addresses and ports of its servers, by its EndpointSlices; none where these were not read."""

    def allows(self, group_version: GroupVersion) -> bool:
        """Whether the backend is to publish it."""
        if group_version in self.excluded:
            return False
        versions = self.versions.get(group_of(group_version)) if self.versions else None
        return versions is None or group_version in versions


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """One apiserver, or one directory of documents, as configured or as found in a cluster."""

    name: BackendName
    kind: BackendKind = BackendKind.AUTO
    url: str = ""
    """Origin and base path without a trailing slash; empty for a directory."""
    urls: tuple[str, ...] = ()
    """Of each server, where it has several and each is to be asked; ``url`` is the first."""
    directory: Path | None = None
    priority: int = 0
    """The highest wins a contested group-version; then the name that sorts first."""
    group_versions: frozenset[GroupVersion] | None = None
    """What it may publish; None: whatever it offers."""
    group_priority: int | None = None
    """``groupPriorityMinimum``, as its APIService says: where its groups stand in discovery."""
    version_priority: int | None = None
    """As its APIService says: where its versions stand within their group."""
    tls: ServerTLS = field(default_factory=ServerTLS)
    credentials: Credentials = field(default_factory=Credentials)
    proxy_url: str | None = field(default=None, repr=False)
    """HTTP proxy on the way to it, http:// or https://; may hold a password. The environment's proxies are
    not used for backends."""
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
        """Whether it can tell us from anybody else."""
        return self.credentials != Credentials() or bool(self.tls.cert_file or self.tls.cert_data)

    @property
    def asked(self) -> Backend:
        """What makes a difference to who asks it; the rest is its standing among the others."""
        return replace(self, priority=0, group_priority=None, version_priority=None, found=None)

    @property
    def address(self) -> tuple[object, ...]:
        """While it is the same, what the backend was known to offer stands, whoever asks and how."""
        return (self.kind, self.url, self.urls, self.directory)

    def owns(self, group_version: GroupVersion) -> bool:
        if self.found is not None and not self.found.allows(group_version):
            return False
        return self.group_versions is None or group_version in self.group_versions

    def is_known_to_have(self, group_version: GroupVersion) -> bool:
        return self.found is not None and group_version in self.found.existing

    def priorities_of(self, group_version: GroupVersion) -> tuple[int | None, int | None]:
        """``group_priority`` and ``version_priority`` as they are for this group-version."""
        own = (self.group_priority, self.version_priority)
        return own if self.found is None else self.found.priorities.get(group_version, own)
