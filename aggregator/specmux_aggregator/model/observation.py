"""What is known of one backend: its offers, and how the last attempt went."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from specmux_aggregator.model.backend import Backend, BackendKind
from specmux_aggregator.model.failure import Failure
from specmux_aggregator.model.servers import BackendServer
from specmux_aggregator.model.servers import Hash as Hash
from specmux_converters.group_versions import GroupVersion
from specmux_schemas.resources import Resources


class Dialect(StrEnum):
    """What a backend was last seen to speak."""

    V3 = "v3"
    V2 = "v2"
    DIRECTORY = "directory"
    CRDS = "crds"


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
    here: a check that changes nothing publishes nothing (aggregation.checks.BackendCheck)."""
    notes: tuple[str, ...] = ()
    """Complaints that cost no document: skipped files, ignored keys. Shown in /status."""
    missing: Mapping[GroupVersion, float] = field(default_factory=lambda: MappingProxyType({}))
    """Of ``offers`` those that its last root did not have, since when (monotonic seconds): not gone yet."""
    resources: Mapping[GroupVersion, Resources] = field(default_factory=lambda: MappingProxyType({}))
    """What discovery is to list, where whoever made the documents knows it: names that are in no document."""
    servers: tuple[BackendServer, ...] = ()
    """The servers that one address hides, the highest first; none where there is one alone."""

    @property
    def is_closed(self) -> bool:
        """The extension apiserver refuses whoever shows no credentials, and it is shown none: that is how the
        cluster wants it, and no outage. What the apiserver knows of it stands in. Definitions are watched
        with the credentials of the cluster: that these are refused for a while closes nothing."""
        return (
            self.failure is not None
            and self.failure.status in (401, 403)
            and self.backend.found is not None
            and self.backend.kind is not BackendKind.CRDS
            and not self.backend.is_fallback
            and not self.backend.shows_credentials
        )
