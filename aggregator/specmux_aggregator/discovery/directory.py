"""Discovery of all backends at one moment. Values only."""

from __future__ import annotations

from specmux_aggregator.discovery.state import Freshness, Lapse
from specmux_aggregator.model.backend import BackendName
from specmux_aggregator.model.snapshot import OwnershipConflict
from specmux_converters.deferred_dataclasses import dataclass
from specmux_converters.group_versions import GroupVersion
from specmux_schemas.resources import Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedVersion:
    """One group-version as clients are told of it."""

    group_version: GroupVersion
    name: str
    """Without its group: "v1"."""
    owner: BackendName
    resources: Resources
    freshness: Freshness
    lapse: Lapse | None = None
    is_known: bool = True
    """False where the resources never could be had."""
    is_peers_only: bool = False
    """Of its owner's servers the highest does not have it."""


@dataclass(frozen=True, slots=True)
class Group:
    """Its versions, the preferred one first; the name "" is the core group."""

    name: str
    versions: tuple[ListedVersion, ...]

    @property
    def preferred(self) -> ListedVersion:
        """What clients take: the first that is not stale."""
        return next((item for item in self.versions if item.freshness is Freshness.CURRENT), self.versions[0])

    @property
    def without_peers(self) -> Group | None:
        """What one server alone would list of it (KEP-4020)."""
        own = tuple(version for version in self.versions if not version.is_peers_only)
        return Group(self.name, own) if own else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """All groups, the preferred first. The core group has a path of its own, so it stands apart."""

    core: Group | None = None
    groups: tuple[Group, ...] = ()
    conflicts: tuple[OwnershipConflict, ...] = ()
    version: bytes | None = None
    """The JSON object at ``/version``, of the backend that goes first."""
    changes_at: float | None = None
    """Monotonic seconds at which time alone makes something stale."""

    @property
    def has_peers(self) -> bool:
        """Whether one server alone would list less."""
        return any(version.is_peers_only for version in self.versions())

    def versions(self) -> tuple[ListedVersion, ...]:
        groups = self.groups if self.core is None else (self.core, *self.groups)
        return tuple(version for group in groups for version in group.versions)
