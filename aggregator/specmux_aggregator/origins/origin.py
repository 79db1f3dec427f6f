"""The interface of an origin, and what it may answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from specmux_aggregator.fetch import Moved, Payload
from specmux_aggregator.model import Dialect, Failure, Hash, Observation, Offer
from specmux_converters.group_versions import GroupVersion


@dataclass(frozen=True, slots=True)
class Seen:
    """All that the backend offers now."""

    dialect: Dialect
    offers: Mapping[GroupVersion, Offer]
    bodies: Mapping[GroupVersion, bytes] = field(default_factory=lambda: MappingProxyType({}))
    """gzip of the JSON form, of the documents that cannot be asked for by hash and are new to the caller."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The backend was asked, and offers what it did the last time."""


Sighting = Seen | Unchanged | Failure


class Origin(Protocol):
    """One backend as the refresh loop and the fill see it. Failures are values."""

    async def observe(self, last: Observation) -> Sighting:
        """What the backend offers, compared with ``last``, which the caller still holds the bodies of."""
        ...

    async def document(
        self, group_version: GroupVersion, *, hash: Hash, accept_gzip: bool
    ) -> Payload | Moved | Failure:
        """The bytes of a native document."""
        ...

    async def close(self) -> None: ...
