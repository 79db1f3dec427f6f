"""The observation of one backend: its offers, and how the last attempt ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from specmux_aggregator.model.backend import Backend, BackendKind
from specmux_aggregator.model.failure import Failure
from specmux_aggregator.model.server_union import BackendServer
from specmux_aggregator.model.server_union import Hash as Hash
from specmux_converters.group_versions import GroupVersion
from specmux_converters.resources import Resources


class Provenance(StrEnum):
    """How a document became OpenAPI v3."""

    NATIVE = "native"
    CONVERTED = "converted"
    FILE = "file"
    CRD = "crd"


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A document that a backend offers, without its bytes."""

    hash: Hash
    provenance: Provenance
    size: int | None = None
    """Bytes of the JSON form, if known."""
    losses: int = 0
    """Number of constructs that conversion could not carry over."""
    loss_examples: tuple[str, ...] = ()
    """The first losses: "<pointer>: <construct>: <reason>"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The state of one backend: its last good offers, and how the last attempt ended."""

    backend: Backend
    dialect: BackendKind | None = None
    """The dialect that it spoke when last seen; never AUTO."""
    offers: Mapping[GroupVersion, Offer] = field(default_factory=lambda: MappingProxyType({}))
    failure: Failure | None = None
    attempted: bool = False
    """Whether an attempt has ended or offers were restored from disk; readiness waits for this."""
    changed_at: float | None = None
    """Wall clock in seconds of the last change of ``offers`` or health. The time of the last *check* is not
    here, since a check without changes publishes nothing (aggregation.check_schedule.BackendCheck)."""
    notes: tuple[str, ...] = ()
    """Complaints that cost no document: skipped files, ignored keys. Shown in /status."""
    missing: Mapping[GroupVersion, float] = field(default_factory=lambda: MappingProxyType({}))
    """The ``offers`` missing from its last root, with the monotonic seconds since when; they are kept for
    now."""
    resources: Mapping[GroupVersion, Resources] = field(default_factory=lambda: MappingProxyType({}))
    """The resources for discovery, if known from the source of the documents; documents lack their names."""
    servers: tuple[BackendServer, ...] = ()
    """The servers behind one address, highest rank first; empty if there is only one."""

    @property
    def is_closed(self) -> bool:
        """Whether the extension apiserver refuses anonymous requests and no credentials are configured:
        intended by the cluster, not an outage. The apiserver's documents stand in. A temporary refusal of the
        credentials for watching definitions does not count."""
        return (
            self.failure is not None
            and self.failure.status in (401, 403)
            and self.backend.found is not None
            and self.backend.kind is not BackendKind.CRDS
            and not self.backend.is_fallback
            and not self.backend.shows_credentials
        )
