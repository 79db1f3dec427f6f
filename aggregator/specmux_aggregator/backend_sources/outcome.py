"""The result of one check of a backend. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from specmux_aggregator.model.backend import BackendKind
from specmux_aggregator.model.failure import Failure
from specmux_aggregator.model.observation import Offer
from specmux_aggregator.model.server_union import BackendServer
from specmux_converters.group_versions import GroupVersion
from specmux_converters.resources import Resources


@dataclass(frozen=True, slots=True)
class BackendOffers:
    """Everything that the backend offers now."""

    dialect: BackendKind
    offers: Mapping[GroupVersion, Offer]
    bodies: Mapping[GroupVersion, bytes] = field(default_factory=lambda: MappingProxyType({}))
    """Gzipped JSON of documents that are new to the caller and cannot be requested by hash."""
    notes: tuple[str, ...] = ()
    seconds: Mapping[GroupVersion, float] = field(default_factory=lambda: MappingProxyType({}))
    """Duration for each newly built document of CustomResourceDefinitions."""
    resources: Mapping[GroupVersion, Resources] = field(default_factory=lambda: MappingProxyType({}))
    """Resources where known: of CustomResourceDefinitions, including names that no document contains, and of
    document files."""
    servers: tuple[BackendServer, ...] = ()
    """The servers behind one address that offer it together."""
    is_partial: bool = False
    """Whether more is being built; the next check goes on at once."""


@dataclass(frozen=True, slots=True)
class UnchangedOffers:
    """The backend was asked and offers the same as before."""


Outcome = BackendOffers | UnchangedOffers | Failure
