"""A server: its address, how to verify it, the credentials for it, and the header fields that carry them.
Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict

from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.lazy.patterns import pattern

if TYPE_CHECKING:  # values alone do without TLS
    import ssl

_TOKEN: Final = pattern(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_CONTROL: Final = pattern(r"[\x00-\x08\x0a-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerTLS:
    """The CA that verifies a server's certificate, and the client certificate to present. All in PEM."""

    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    server_name: str | None = None
    insecure_skip_verify: bool = False
    ca_data: bytes | None = field(default=None, repr=False)
    """Used instead of ``ca_file``, and likewise the next two: inline data of a cluster or kubeconfig."""
    cert_data: bytes | None = field(default=None, repr=False)
    key_data: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecPlugin:
    """A program that prints credentials (client.authentication.k8s.io). Its arguments may be secret."""

    command: str
    """A path, or a name that is searched in PATH."""
    args: tuple[str, ...] = field(default=(), repr=False)
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """Added to the environment of this process."""
    api_version: str = "client.authentication.k8s.io/v1"
    install_hint: str = ""
    """Shown if the program cannot be started."""
    provide_cluster_info: bool = False
    cluster_config: bytes | None = field(default=None, repr=False)
    """The cluster's settings for the program, as JSON; passed with the cluster's address if the program
    requests it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """The credentials for one server; never used for another, and never a client's."""

    token_file: Path | None = None
    """Bearer token; the file is read again when it changes."""
    remote_user: str | None = None
    """Sent as X-Remote-User, for servers that accept our client certificate as a front proxy's."""
    token: str | None = field(default=None, repr=False)
    """Bearer token inlined in a kubeconfig; ``token_file`` has precedence."""
    basic: tuple[str, str] | None = field(default=None, repr=False)
    """User name and password (RFC 7617)."""
    exec_plugin: ExecPlugin | None = None
    """Used if there is neither a token nor a password."""
    impersonation: tuple[tuple[str, str], ...] = ()
    """Impersonate-* header fields; names may repeat."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAccess:
    """The address of one server, and the credentials for it."""

    url: str
    """Origin and base path without a trailing slash."""
    tls: ServerTLS = field(default_factory=ServerTLS)
    credentials: Credentials = field(default_factory=Credentials)
    proxy: str | None = field(default=None, repr=False)
    """HTTP proxy to reach it, http:// or https://; may contain a password."""
    context: str = ""
    """The name of the kubeconfig context; "in-cluster" for a pod's own."""
    namespace: str = "default"

    @property
    def server_name(self) -> str | None:
        """The name in the certificate, if it differs from the URL's."""
        return self.tls.server_name


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientAccess:
    """The address and credentials with which a client of the cache reaches one server."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    tls: ssl.SSLContext | None = None
    server_name: str | None = None
    """The name in the certificate, if it differs from the URL's."""
    proxy: str | None = field(default=None, repr=False)
    partition: str | None = None
    """Entries are shared by this name, so that a token that is exchanged every hour keeps what was stored;
    None: by what is shown."""
    identity: str = ""
    """The identity of a client certificate."""

    @property
    def arguments(self) -> AccessArguments:
        return {each: getattr(self, each) for each in AccessArguments.__annotations__}  # type: ignore[return-value]


class AccessArguments(TypedDict, total=False):
    """The fields of ``ClientAccess`` that a client accepts as keywords."""

    headers: Mapping[str, str]
    tls: ssl.SSLContext | None
    server_name: str | None
    proxy: str | None
    partition: str | None
    identity: str


def is_bearer_value(text: str) -> bool:
    """Whether a token can be sent. More permissive than RFC 6750 2.1; excludes whatever would break the
    header field."""
    return bool(text) and all("\x20" < character < "\x7f" for character in text)


def check_fields(fields: Mapping[str, str]) -> dict[str, str]:
    """A copy. Raises ValueError, which quotes no value, for a field that RFC 9110 5 does not allow."""
    for name, value in fields.items():
        if not _TOKEN.fullmatch(name) or _CONTROL.search(value):
            raise ValueError(f"the header field {name!r} cannot be sent: a name is a token, a value one line")
    return dict(fields)
