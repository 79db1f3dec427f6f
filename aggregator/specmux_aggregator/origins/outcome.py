"""What one check of a backend saw. Values; nothing follows from them here."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from specmux_aggregator.jobs.built import BuiltDocument
from specmux_aggregator.model.failure import Failure
from specmux_aggregator.model.observation import Dialect, Offer
from specmux_aggregator.model.servers import BackendServer
from specmux_converters.group_versions import GroupVersion
from specmux_schemas.resources import Resources


@dataclass(frozen=True, slots=True)
class BackendOffers:
    """All that the backend offers now."""

    dialect: Dialect
    offers: Mapping[GroupVersion, Offer]
    bodies: Mapping[GroupVersion, bytes] = field(default_factory=lambda: MappingProxyType({}))
    """gzip of the JSON form, of the documents that cannot be asked for by hash and are new to the caller."""
    notes: tuple[str, ...] = ()
    seconds: Mapping[GroupVersion, float] = field(default_factory=lambda: MappingProxyType({}))
    """How long the documents of CustomResourceDefinitions took that were built anew."""
    resources: Mapping[GroupVersion, Resources] = field(default_factory=lambda: MappingProxyType({}))
    """Where they are known: of CustomResourceDefinitions with the names that are in no document, and of files
    that are documents."""
    servers: tuple[BackendServer, ...] = ()
    """The servers that offer it together, where one address hides several."""


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The backend was asked, and offers what it did the last time."""


Outcome = BackendOffers | Unchanged | Failure


def seen_of(
    dialect: Dialect,
    built: Iterable[BuiltDocument],
    *,
    notes: tuple[str, ...] = (),
    seconds: Mapping[GroupVersion, float] | None = None,
    resources: Mapping[GroupVersion, Resources] | None = None,
) -> BackendOffers:
    """A outcome made of documents that were built here."""
    documents = tuple(built)
    return BackendOffers(
        dialect,
        {item.group_version: item.offer for item in documents},
        {item.group_version: item.gzip for item in documents if item.gzip is not None},
        notes,
        seconds or {},
        resources or {},
    )
