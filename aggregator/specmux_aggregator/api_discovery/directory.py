"""Discovery of all backends at one moment. Values only."""

from __future__ import annotations

from specmux_aggregator.api_discovery.backend_knowledge import Freshness, Lapse
from specmux_aggregator.model.backend import BackendName
from specmux_aggregator.model.snapshot import OwnershipConflict
from specmux_converters.group_versions import GroupVersion
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.resources import Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedVersion:
    """A group-version as clients see it."""

    group_version: GroupVersion
    name: str
    """Without the group: "v1"."""
    owner: BackendName
    resources: Resources
    freshness: Freshness
    lapse: Lapse | None = None
    is_known: bool = True
    """False if its resources were never available."""
    is_peers_only: bool = False
    """Whether the highest-ranked of its owner's servers lacks it."""


@dataclass(frozen=True, slots=True)
class Group:
    """The versions of a group, preferred first; the name "" is the core group."""

    name: str
    versions: tuple[ListedVersion, ...]

    @property
    def preferred(self) -> ListedVersion:
        """The version that clients use: the first that is not stale."""
        return next((item for item in self.versions if item.freshness is Freshness.CURRENT), self.versions[0])

    @property
    def without_peers(self) -> Group | None:
        """The group as a single server would list it (KEP-4020)."""
        own = tuple(version for version in self.versions if not version.is_peers_only)
        return Group(self.name, own) if own else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """All groups, preferred first. The core group has its own path, so it is separate."""

    core: Group | None = None
    groups: tuple[Group, ...] = ()
    conflicts: tuple[OwnershipConflict, ...] = ()
    version: bytes | None = None
    """The JSON object of ``/version`` of the backend with precedence."""
    awaits_version: bool = False
    """Whether a backend that may have it could not be asked."""
    changes_at: float | None = None
    """Monotonic seconds when the passing of time alone makes something stale."""

    @property
    def has_peers(self) -> bool:
        """Whether a single server would list less."""
        return any(version.is_peers_only for version in self.versions())

    def versions(self) -> tuple[ListedVersion, ...]:
        groups = self.groups if self.core is None else (self.core, *self.groups)
        return tuple(version for group in groups for version in group.versions)
