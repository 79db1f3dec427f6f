"""The values that flow one way: Backend → Observation → Entry → Snapshot → Request → Prepared.

All are frozen. A Snapshot is replaced as a whole, so a reader that took one sees one consistent state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import NewType

from specmux_converters.group_versions import GroupVersion
from specmux_schemas.resources import Resources

BackendName = NewType("BackendName", str)
Hash = NewType("Hash", str)
ETag = NewType("ETag", str)
"""An entity tag as it stands on the wire, quotes included (RFC 9110 8.8.3)."""


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


class Dialect(StrEnum):
    """What a backend was last seen to speak."""

    V3 = "v3"
    V2 = "v2"
    DIRECTORY = "directory"
    CRDS = "crds"


class Coding(StrEnum):
    """Content codings we serve (RFC 9110 8.4.1)."""

    IDENTITY = "identity"
    GZIP = "gzip"
    ZSTD = "zstd"


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

    def priorities_of(self, group_version: GroupVersion) -> tuple[int | None, int | None]:
        """``group_priority`` and ``version_priority`` as they are for this group-version."""
        own = (self.group_priority, self.version_priority)
        return own if self.found is None else self.found.priorities.get(group_version, own)


class Cause(StrEnum):
    """Why a backend could not be used; also the metric label, so the list is closed."""

    REFUSED = "refused"
    UNRESOLVED = "unresolved"
    RESET = "reset"
    TIMEOUT = "timeout"
    BAD_TLS = "bad_tls"
    CREDENTIALS = "credentials"
    NOT_FOUND = "not_found"
    NOT_ACCEPTABLE = "not_acceptable"
    THROTTLED = "throttled"
    SERVER_ERROR = "server_error"
    REDIRECTED = "redirected"
    UNEXPECTED_STATUS = "unexpected_status"
    TRUNCATED = "truncated"
    BAD_BODY = "bad_body"
    TOO_LARGE = "too_large"
    BAD_ROOT = "bad_root"
    UNREADABLE = "unreadable"
    BUILD_FAILED = "build_failed"
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True)
class Failure:
    """One failed attempt. ``detail`` is for people: short, printable, without secrets."""

    cause: Cause
    detail: str
    retry_after: float | None = None
    """Seconds the backend asked us to wait."""
    status: int | None = None
    """What it answered, where that is the failure."""


class Provenance(StrEnum):
    """How a document came to be v3."""

    NATIVE = "native"
    CONVERTED = "converted"
    FILE = "file"
    CRD = "crd"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """One document that a backend has, without its bytes."""

    hash: Hash
    provenance: Provenance
    size: int | None = None
    """Bytes of the JSON form, where known."""
    losses: int = 0
    """How many constructs conversion could not carry over."""
    loss_examples: tuple[str, ...] = ()
    """The first of them: "<pointer>: <construct>: <reason>"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What is known of one backend: its last good offers, and how the last attempt went."""

    backend: Backend
    dialect: Dialect | None = None
    offers: Mapping[GroupVersion, Offer] = field(default_factory=lambda: MappingProxyType({}))
    failure: Failure | None = None
    attempted: bool = False
    """At least one attempt ended, or its offers were restored from disk: readiness waits for this."""
    changed_at: float | None = None
    """Wall clock, seconds, of the last change of ``offers`` or of health. When it was last *checked* is not
    here: a check that changes nothing publishes nothing (refresh.Check)."""
    notes: tuple[str, ...] = ()
    """Complaints that cost no document: skipped files, ignored keys. Shown in /status."""
    resources: Mapping[GroupVersion, Resources] = field(default_factory=lambda: MappingProxyType({}))
    """What discovery is to list, where whoever made the documents knows it: names that are in no document."""


@dataclass(frozen=True, slots=True)
class DocumentKey:
    """Where a document's bytes are found. The owner is part of it: a backend can forge another's hash."""

    owner: BackendName
    group_version: GroupVersion
    hash: Hash


@dataclass(frozen=True, slots=True)
class Entry:
    """A published group-version."""

    group_version: GroupVersion
    owner: BackendName
    offer: Offer
    key: DocumentKey


@dataclass(frozen=True, slots=True)
class Conflict:
    """A group-version that several backends offer; the losers are not served."""

    group_version: GroupVersion
    winner: BackendName
    losers: tuple[BackendName, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that clients can be told at one moment."""

    generation: int
    entries: Mapping[GroupVersion, Entry]
    root: DocumentKey
    """The discovery root; it has an owner and a group-version of its own (snapshot.ROOT), and is served as a
    document whose JSON form is always there."""
    root_json: bytes
    observations: Mapping[BackendName, Observation]
    conflicts: tuple[Conflict, ...] = ()


@dataclass(frozen=True, slots=True)
class Request:
    """What of a request can change its answer. Repeated header fields are joined by ", " (RFC 9110 5.3)."""

    method: str
    path: str
    """As on the wire: never percent-decoded."""
    query: str = ""
    """As on the wire, without "?"."""
    accept: str | None = None
    accept_encoding: str | None = None
    if_none_match: str | None = None
    if_match: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """An answer ready for the wire but for its time lines (Date, and Expires when ``is_immutable``)."""

    status: int
    head: bytes
    """Status line and header fields, each ended by CRLF; without Date, Expires, Connection, and the empty
    line."""
    body: bytes
    """Empty for HEAD, 304 and every other answer without content."""
    is_immutable: bool = False
    route: str = "other"
    """Metric label: openapi_root, openapi_document, health, metrics, status, other."""
    format: str = "none"
    """Metric label: json, protobuf, cbor, text, none."""
    is_stale: bool = False
    """The backend it came from is failing; counted, not shown to the client."""
    good_until: float | None = None
    """Monotonic seconds until which the same request gets the same answer in this snapshot; None: no end."""
