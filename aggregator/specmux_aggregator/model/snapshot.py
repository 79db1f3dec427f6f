"""Everything that clients can be told at one moment. Replaced as a whole, so a reader sees one consistent
state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from specmux_aggregator.model.backend import BackendName
from specmux_aggregator.model.observation import Hash, Observation, Offer
from specmux_converters.group_versions import GroupVersion


class DocumentKey(NamedTuple):
    """The key of a document's bytes. It includes the owner, since a backend can forge another's hash.

    A tuple, because every request performs a lookup with it.
    """

    owner: BackendName
    group_version: GroupVersion
    hash: Hash


@dataclass(frozen=True, slots=True)
class SnapshotEntry:
    """A published group-version."""

    group_version: GroupVersion
    owner: BackendName
    offer: Offer
    key: DocumentKey


@dataclass(frozen=True, slots=True)
class OwnershipConflict:
    """A group-version that several backends offer; only the owner's is served."""

    group_version: GroupVersion
    winner: BackendName
    losers: tuple[BackendName, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """Everything that clients can be told at one moment."""

    generation: int
    entries: Mapping[GroupVersion, SnapshotEntry]
    root: DocumentKey
    """The key of the discovery root, which has its own owner and group-version (ownership.ROOT_OWNER) and is
    served as a document whose JSON form is always present."""
    root_json: bytes
    observations: Mapping[BackendName, Observation]
    conflicts: tuple[OwnershipConflict, ...] = ()

    @property
    def is_partial(self) -> bool:
        """Whether a backend that was not checked yet may have what is missing; also true before the set of
        backends is known."""
        return not self.observations or not all(each.attempted for each in self.observations.values())


@dataclass(frozen=True, slots=True)
class CheckSummary:
    """Number of findings, and the first of them by level."""

    errors: int
    warnings: int
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PublishedCheck:
    """The result for one published document. Without a summary it was not checked, for the given
    ``reason``."""

    key: DocumentKey
    summary: CheckSummary | None
    reason: str | None = None
