"""All that clients can be told at one moment. Replaced as a whole: a reader that took one sees one state."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from specmux_aggregator.model.backend import BackendName
from specmux_aggregator.model.observation import Hash, Observation, Offer
from specmux_converters.group_versions import GroupVersion


class DocumentKey(NamedTuple):
    """Where a document's bytes are found. The owner is part of it: a backend can forge another's hash.

    A tuple, since every request that is decided looks something up by it."""

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
    """A group-version that several backends offer; the losers are not served."""

    group_version: GroupVersion
    winner: BackendName
    losers: tuple[BackendName, ...]


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All that clients can be told at one moment."""

    generation: int
    entries: Mapping[GroupVersion, SnapshotEntry]
    root: DocumentKey
    """The discovery root; it has an owner and a group-version of its own (ownership.ROOT_OWNER), and is
    served as a document whose JSON form is always there."""
    root_json: bytes
    observations: Mapping[BackendName, Observation]
    conflicts: tuple[OwnershipConflict, ...] = ()

    @property
    def is_partial(self) -> bool:
        """A backend has not been looked at yet, and may have what is not here; before there are backends, any
        that will come."""
        return not self.observations or not all(each.attempted for each in self.observations.values())
