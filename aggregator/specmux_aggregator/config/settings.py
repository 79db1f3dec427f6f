"""Every setting of the service, with its default, unit and meaning.

The file, the environment and the flags are all read against these classes (setting_fields.py), and
docs/settings.md is tested against them: there is no second list.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from specmux_aggregator.model.backend import Backend
from specmux_converters.document import Limits as DocumentLimits

MIB = 1024 * 1024

TICK = 0.001
"""Seconds: the shortest timeout."""


def _setting(
    default: Any,
    doc: str,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
    choices: tuple[str, ...] = (),
    short: str | None = None,
) -> Any:
    """A field. Values outside the bounds (inclusive, in its own unit) or the choices are refused.

    ``short``: another flag for it, where people know the setting by that name.
    """
    limits = {"at_least": at_least, "at_most": at_most, "choices": choices, "short": short}
    return field(default=default, metadata={"doc": doc, **limits})


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenSettings:
    """Where clients connect."""

    address: str = _setting("127.0.0.1", "address to bind")
    port: int = _setting(8080, "port to bind; 0 takes a free one", at_least=0, at_most=65535)
    processes: int = _setting(
        1,
        "processes that answer clients, of which one does all else; more than 1: without TLS",
        at_least=1,
        at_most=64,
        short="--processes",
    )
    tls_cert_file: Path | None = _setting(None, "PEM certificate chain; read again when it changes")
    tls_key_file: Path | None = _setting(None, "PEM private key of the certificate")
    max_connections: int = _setting(4096, "open connections in total; one more is closed at once", at_least=1)
    max_connections_per_address: int = _setting(
        2048, "open connections of one IPv4 address or IPv6 /64; 0: no cap of its own", at_least=0
    )
    max_in_flight: int = _setting(
        1024,
        "requests that wait, and those proxied to one backend; one more is answered 429; 0: no cap",
        at_least=0,
    )
    keepalive_timeout: float = _setting(75.0, "seconds an idle connection is kept", at_least=TICK)
    header_timeout: float = _setting(
        10.0, "seconds a client may take to send a request's head", at_least=TICK
    )
    write_timeout: float = _setting(
        30.0, "seconds a client may read nothing of a waiting answer", at_least=TICK
    )
    shutdown_timeout: float = _setting(
        10.0, "seconds that running requests get when the service stops", at_least=0
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthSettings:
    """Who may ask (docs/authentication.md)."""

    mode: str = _setting(
        "none",
        "authentication: none, kubernetes (the cluster reviews tokens and access), token-file or mtls",
        choices=("none", "kubernetes", "token-file", "mtls"),
    )
    token_file: Path | None = _setting(
        None, "mode token-file: lines of token,name; read again when they change"
    )
    audiences: tuple[str, ...] | None = _setting(
        None, "mode kubernetes: audiences of which a token must have one; none: the apiserver's own"
    )
    cache_seconds: float = _setting(
        10.0, "mode kubernetes: seconds for which a review is remembered", at_least=0, at_most=300
    )
    review_grace: float = _setting(
        300.0,
        "mode kubernetes: seconds for which what was allowed counts longer while the cluster cannot be asked",
        at_least=0,
        at_most=3600,
    )
    client_ca_file: Path | None = _setting(
        None, "mode mtls: PEM certificates that a client's is verified against; read again when they change"
    )
    client_names: tuple[str, ...] | None = _setting(
        None, "mode mtls: common or alternative names of which a certificate must have one; none: any"
    )
    requestheader_ca_file: Path | None = _setting(
        None, "mode kubernetes: PEM certificates of front proxies, whose X-Remote-User is believed"
    )
    requestheader_names: tuple[str, ...] | None = _setting(
        None, "mode kubernetes: common names of which a front proxy's certificate must have one; none: any"
    )

    @property
    def is_private(self) -> bool:
        """Not everybody may ask, so no shared cache may keep an answer."""
        return self.mode != "none"

    @property
    def ca_file(self) -> Path | None:
        """The one CA bundle that the mode verifies client certificates against."""
        return {"mtls": self.client_ca_file, "kubernetes": self.requestheader_ca_file}.get(self.mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class KubernetesSettings:
    """A cluster to stand in front of (docs/kubernetes.md)."""

    in_cluster: bool = _setting(
        False, "take the cluster that this pod runs in, with its service account", short="--in-cluster"
    )
    kubeconfig: Path | None = _setting(
        None, "kubeconfig of the cluster; its current context, unless context names one", short="--kubeconfig"
    )
    context: str | None = _setting(
        None, "context of the kubeconfig; without one, of the files that kubectl reads", short="--context"
    )
    api_services: bool = _setting(True, "watch APIServices, and take each with a service as a backend")
    crds: bool = _setting(True, "watch CustomResourceDefinitions, and build their documents")
    apiserver: bool = _setting(True, "take the apiserver itself as the backend for the rest")
    service_url: str = _setting(
        "https://{name}.{namespace}.svc:{port}", "where the service of an APIService is reached"
    )
    service_token_file: Path | None = _setting(
        None, "bearer token sent to every service of an APIService; default: none"
    )
    service_cert_file: Path | None = _setting(
        None, "PEM client certificate sent to every service of an APIService; default: none"
    )
    service_key_file: Path | None = _setting(None, "PEM private key of that certificate, unless it holds it")
    service_remote_user: str | None = _setting(
        None, "user name for services of APIServices that trust that certificate as a front proxy's"
    )

    endpoint_slices: str = _setting(
        "auto",
        "ask each apiserver and each replica by its own address, as EndpointSlices say: auto, on, or off; "
        "auto: within the cluster, where those addresses lead somewhere",
        choices=("auto", "on", "off"),
    )

    @property
    def reads_endpoint_slices(self) -> bool:
        return self.endpoint_slices == "on" or (self.endpoint_slices == "auto" and self.in_cluster)

    @property
    def is_meant(self) -> bool:
        """Whether there is a cluster at all."""
        return self.in_cluster or self.kubeconfig is not None or self.context is not None

    @property
    def is_source(self) -> bool:
        """Whether it has backends for us."""
        return self.is_meant and (self.api_services or self.crds or self.apiserver)


@dataclass(frozen=True, slots=True, kw_only=True)
class PollingSettings:
    """How backends are watched."""

    interval: float = _setting(10.0, "seconds between checks of a backend", at_least=0.01)
    jitter: float = _setting(
        0.1, "share of the interval by which each check is moved at random, 0 to 1", at_least=0, at_most=1
    )
    connect_timeout: float = _setting(3.0, "seconds to connect, TLS included", at_least=TICK)
    idle_timeout: float = _setting(10.0, "seconds without a byte", at_least=TICK)
    total_timeout: float = _setting(60.0, "seconds for one answer", at_least=TICK)
    backoff_min: float = _setting(
        1.0, "seconds before a failed backend is tried again, at first", at_least=TICK
    )
    backoff_max: float = _setting(
        60.0, "seconds before a failed backend is tried again, at most", at_least=TICK
    )
    removal_grace: float = _setting(
        15.0, "seconds for which a group-version must be missing from a root until it is gone", at_least=0
    )
    revalidate_interval: float = _setting(
        1.0,
        "seconds for which a check vouches for a hash nobody knows; one check per backend in that time",
        at_least=0,
    )
    v3_probe_interval: float = _setting(
        60.0, "seconds between looks whether a v2 backend has learned v3", at_least=TICK
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxySettings:
    """Requests that backends answer themselves, through us (docs/proxying.md)."""

    resources: bool = _setting(
        False, "proxy requests for resources to their backends, with the client's credentials"
    )
    answer_timeout: float = _setting(
        90.0, "seconds in which a backend must begin its answer, or a client's body move", at_least=TICK
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscoverySettings:
    """Discovery of backends, at /api and /apis."""

    enabled: bool = _setting(True, "answer /api, /apis, all below them that is discovery, and /version")
    interval: float = _setting(60.0, "seconds between questions to a backend", at_least=0.01)
    stale_grace: float = _setting(
        300.0, "seconds for which a list that cannot be confirmed is served as current", at_least=0
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaSettings:
    """JSON Schemas of all kinds (docs/schemas.md)."""

    enabled: bool = _setting(True, "answer /schemas and all below it")
    access: str = _setting(
        "as-documents",
        "who may ask: as-documents, anonymous, or path-token (also below /schemas/token/TOKEN/)",
        choices=("as-documents", "anonymous", "path-token"),
    )
    token_file: Path | None = _setting(
        None, "access path-token: a token in each line, of 16 letters or more; read again when it changes"
    )
    release: str | None = _setting(
        None, "release whose paths are answered beside master, v1.35.0; none: that of /version"
    )
    base_url: str | None = _setting(None, "address of /schemas in catalog.json; none: relative")
    max_bytes: int = _setting(32 * MIB, "bytes of schemas kept in memory", at_least=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationSettings:
    """Objects that clients send to be checked (docs/validation.md)."""

    enabled: bool = _setting(False, "answer POST /openapi/validate")
    max_in_flight: int = _setting(
        128, "objects that are checked or wait for it; one more is answered 429", at_least=1
    )
    timeout: float = _setting(
        10.0,
        "seconds in which a body must have come, and then for waiting and the check together",
        at_least=TICK,
        at_most=300,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentSettings:
    """Checks of published documents (docs/check.md)."""

    check: str = _setting(
        "off",
        "check each once against its standard, beside all else, and report findings: off or warn",
        choices=("off", "warn"),
    )
    check_timeout: float = _setting(300.0, "seconds for the check of one document", at_least=TICK)
    prefetch: str = _setting(
        "auto",
        "fetch documents when they are published, so that an outage costs none: auto, on, or off; "
        "auto: those of a watched cluster",
        choices=("auto", "on", "off"),
    )
    openapi_v2: str = _setting(
        "passthrough",
        "who answers /openapi/v2: off, passthrough (one backend), or merged (one of all documents)",
        choices=("off", "passthrough", "merged"),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitSettings:
    """Limits on the cost of a backend."""

    max_document_bytes: int = _setting(64 * MIB, "bytes of one document, decoded", at_least=1)
    max_root_bytes: int = _setting(8 * MIB, "bytes of a backend's root, decoded", at_least=1)
    max_group_versions: int = _setting(10_000, "group-versions of one backend", at_least=1)
    max_depth: int = _setting(200, "nesting of a document", at_least=1, at_most=254)
    build_timeout: float = _setting(
        60.0, "seconds of processor time for one build in the worker process", at_least=TICK
    )
    group_version_series: int = _setting(
        500,
        "group-versions up to which /metrics has series of each; with more, sums and what needs attention",
        at_least=0,
    )

    @property
    def of_documents(self) -> DocumentLimits:
        return DocumentLimits(max_bytes=self.max_document_bytes, max_depth=self.max_depth)

    @property
    def of_roots(self) -> DocumentLimits:
        """Also of discovery, which is as short."""
        return DocumentLimits(max_bytes=self.max_root_bytes, max_depth=self.max_depth)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySettings:
    """Limits on memory."""

    documents_bytes: int = _setting(256 * MIB, "bytes of documents kept in all forms together", at_least=0)
    shed_percent: int = _setting(
        85,
        "percent of the cgroup's limit, or of all memory, from which on documents are let go; 0: never",
        at_least=0,
        at_most=100,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class StateSettings:
    """State kept on disk for the next start."""

    directory: Path | None = _setting(None, "directory of the last good documents; none: nothing is written")
    max_bytes: int = _setting(512 * MIB, "bytes on disk above which the oldest are removed", at_least=MIB)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSettings:
    """The log of changes to published documents (docs/changes.md)."""

    enabled: bool = _setting(True, "compare documents that change, and answer /openapi/changes")
    settle: float = _setting(
        10.0, "seconds without another change after which a group-version is compared", at_least=0
    )
    documents: int = _setting(10, "documents of one group-version kept for comparisons", at_least=1)
    max_bytes: int = _setting(
        64 * MIB, "bytes of kept documents, compressed, and of the log, each", at_least=MIB
    )
    entries: int = _setting(1000, "entries of the change log", at_least=1)
    fetch_native: bool = _setting(
        False, "fetch native documents for comparing them; else those are compared that clients asked for"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DictionarySettings:
    """Documents as their difference from an earlier one (docs/encodings.md#dictionaries)."""

    enabled: bool = _setting(
        True, "let clients use the document that they have as a dictionary for its successor (RFC 9842)"
    )
    wait: float = _setting(
        0.25,
        "seconds that a request waits for its delta to be made; then it gets the whole document",
        at_least=0,
    )
    max_bytes: int = _setting(16 * MIB, "bytes of deltas kept in memory", at_least=MIB)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogSettings:
    """Logging, to standard error."""

    format: str = _setting("text", "lines as text or json", choices=("text", "json"))
    level: str = _setting(
        "info", "least severity: debug, info, warning or error", choices=("debug", "info", "warning", "error")
    )
    slow_request: float = _setting(1.0, "seconds after which a request is logged", at_least=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The whole configuration."""

    listen: ListenSettings = field(default_factory=ListenSettings)
    auth: AuthSettings = field(default_factory=AuthSettings)
    kubernetes: KubernetesSettings = field(default_factory=KubernetesSettings)
    polling: PollingSettings = field(default_factory=PollingSettings)
    proxy: ProxySettings = field(default_factory=ProxySettings)
    discovery: DiscoverySettings = field(default_factory=DiscoverySettings)
    schemas: SchemaSettings = field(default_factory=SchemaSettings)
    validation: ValidationSettings = field(default_factory=ValidationSettings)
    documents: DocumentSettings = field(default_factory=DocumentSettings)
    limits: LimitSettings = field(default_factory=LimitSettings)
    memory: MemorySettings = field(default_factory=MemorySettings)
    state: StateSettings = field(default_factory=StateSettings)
    changes: ChangeSettings = field(default_factory=ChangeSettings)
    dictionaries: DictionarySettings = field(default_factory=DictionarySettings)
    log: LogSettings = field(default_factory=LogSettings)
    backends: tuple[Backend, ...] = ()
