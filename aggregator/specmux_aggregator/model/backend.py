"""One apiserver or directory, as configured or found in a cluster: how it is reached, what it may offer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import NewType

from specmux_converters.group_versions import GroupVersion

BackendName = NewType("BackendName", str)


class Kind(StrEnum):
    """What the configuration says a backend is."""

    AUTO = "auto"
    V3 = "v3"
    V2 = "v2"
    DIRECTORY = "directory"
    CRDS = "crds"
    """A directory of CustomResourceDefinition manifests."""

    @property
    def is_directory(self) -> bool:
        return self in (Kind.DIRECTORY, Kind.CRDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendTLS:
    """How one backend's certificate is checked, and with which we present ourselves. All of it PEM."""

    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    server_name: str | None = None
    insecure_skip_verify: bool = False
    ca_data: bytes | None = field(default=None, repr=False)
    """Instead of ``ca_file``, as are the next two of theirs: what a cluster or a kubeconfig holds inline."""
    cert_data: bytes | None = field(default=None, repr=False)
    key_data: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecPlugin:
    """A program that prints credentials (client.authentication.k8s.io). What it is called with can be
    secret."""

    command: str
    """A path, or a name that is looked up in PATH."""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Added to our own environment."""
    api_version: str = "client.authentication.k8s.io/v1"
    install_hint: str = ""
    """Told where the program cannot be started."""
    provide_cluster_info: bool = False
    cluster_config: bytes | None = field(default=None, repr=False)
    """The cluster's settings for the program, as JSON; sent with the cluster's address where the program
    wants that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """What one backend is told about us. Never another's, and never a client's."""

    token_file: Path | None = None
    """Bearer token; the file is read again when it changes."""
    remote_user: str | None = None
    """Sent as X-Remote-User, for backends that trust our client certificate as a front proxy."""
    token: str | None = field(default=None, repr=False)
    """Bearer token of a kubeconfig that holds it inline; ``token_file`` goes before it."""
    basic: tuple[str, str] | None = field(default=None, repr=False)
    """User name and password (RFC 7617)."""
    exec_plugin: ExecPlugin | None = None
    """Asked where there is neither a token nor a password."""
    impersonation: tuple[tuple[str, str], ...] = ()
    """Impersonate-* header fields; a name may repeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a watched cluster says of a backend, beside how it is reached."""

    cluster: str = ""
    """The URL of its apiserver."""
    is_fallback: bool = False
    """It publishes what no other backend has, and this is no conflict: the apiserver itself, which offers
    everybody's documents."""
    excluded: frozenset[GroupVersion] = frozenset()
    """What it must not publish."""
    existing: frozenset[GroupVersion] = frozenset()
    """What its cluster says that there is: not gone when it is missing from a root."""
    priorities: Mapping[GroupVersion, tuple[int, int]] = field(
        default_factory=lambda: MappingProxyType({}), hash=False
    )
    """``groupPriorityMinimum`` and ``versionPriority`` of single group-versions, where they are not the
    backend's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backend:
    """One apiserver, or one directory of documents, as configured or as found in a cluster."""

    name: BackendName
    kind: Kind = Kind.AUTO
    url: str = ""
    """Origin and base path without a trailing slash; empty for a directory."""
    directory: Path | None = None
    priority: int = 0
    """The highest wins a contested group-version; then the name that sorts first."""
    group_versions: frozenset[GroupVersion] | None = None
    """What it may publish; None: whatever it offers."""
    group_priority: int | None = None
    """``groupPriorityMinimum``, as its APIService says: where its groups stand in discovery."""
    version_priority: int | None = None
    """As its APIService says: where its versions stand within their group."""
    tls: BackendTLS = field(default_factory=BackendTLS)
    credentials: Credentials = field(default_factory=Credentials)
    proxy_url: str | None = field(default=None, repr=False)
    """HTTP proxy on the way to it, http:// or https://; may hold a password. The environment's proxies are
    not used for backends."""
    found: Found | None = None
    """None for a backend of the configuration."""

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
        return (self.kind, self.url, self.directory)

    def owns(self, group_version: GroupVersion) -> bool:
        if self.found is not None and group_version in self.found.excluded:
            return False
        return self.group_versions is None or group_version in self.group_versions

    def is_known_to_have(self, group_version: GroupVersion) -> bool:
        return self.found is not None and group_version in self.found.existing

    def priorities_of(self, group_version: GroupVersion) -> tuple[int | None, int | None]:
        """``group_priority`` and ``version_priority`` as they are for this group-version."""
        own = (self.group_priority, self.version_priority)
        return own if self.found is None else self.found.priorities.get(group_version, own)
