"""A server: where it is, how it is verified, and what it is shown of us. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from specmux_converters.deferred_dataclasses import dataclass

if TYPE_CHECKING:  # values alone do without TLS
    import ssl


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTLS:
    """How a server's certificate is checked, and with which we present ourselves. All of it PEM."""

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
    """What one server is told about us. Never another's, and never a client's."""

    token_file: Path | None = None
    """Bearer token; the file is read again when it changes."""
    remote_user: str | None = None
    """Sent as X-Remote-User, for servers that trust our client certificate as a front proxy."""
    token: str | None = field(default=None, repr=False)
    """Bearer token of a kubeconfig that holds it inline; ``token_file`` goes before it."""
    basic: tuple[str, str] | None = field(default=None, repr=False)
    """User name and password (RFC 7617)."""
    exec_plugin: ExecPlugin | None = None
    """Asked where there is neither a token nor a password."""
    impersonation: tuple[tuple[str, str], ...] = ()
    """Impersonate-* header fields; a name may repeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAccess:
    """How one server is reached, and as whom."""

    url: str
    """Origin and base path without a trailing slash."""
    tls: ServerTLS = field(default_factory=ServerTLS)
    credentials: Credentials = field(default_factory=Credentials)
    proxy: str | None = field(default=None, repr=False)
    """HTTP proxy on the way to it, http:// or https://; may hold a password."""
    context: str = ""
    """The kubeconfig's name for it; "in-cluster" for a pod's own."""
    namespace: str = "default"

    @property
    def server_name(self) -> str | None:
        """The certificate's, where it is not the URL's."""
        return self.tls.server_name


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientAccess:
    """How a client of the cache reaches one server."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    tls: ssl.SSLContext | None = None
    server_name: str | None = None
    """The certificate's, where it is not the URL's."""
    proxy: str | None = field(default=None, repr=False)
    partition: str | None = None
    """Entries are shared by this name, so that a token that is exchanged every hour keeps what was stored;
    None: by what is shown."""
    identity: str = ""
    """Names who a client certificate is for."""

    @property
    def arguments(self) -> AccessArguments:
        return {each: getattr(self, each) for each in AccessArguments.__annotations__}  # type: ignore[return-value]


class AccessArguments(TypedDict, total=False):
    """What of ``ClientAccess`` a client takes by keyword."""

    headers: Mapping[str, str]
    tls: ssl.SSLContext | None
    server_name: str | None
    proxy: str | None
    partition: str | None
    identity: str
