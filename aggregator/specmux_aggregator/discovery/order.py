"""The priority of groups and versions, which clients use as preference. Pure.

The priority of a group and version comes from its APIService, or from kube-aggregator's defaults. Equal
versions compare by maturity and number, equal groups by name (``specmux_schemas.order``).
"""

from __future__ import annotations

from typing import Final

from specmux_aggregator.model.backend import Backend, BackendKind
from specmux_converters.group_versions import GroupVersion, split
from specmux_schemas.order import BUILT_IN_GROUPS, DEFAULT_GROUP

DEFAULT_VERSION: Final = 15
CRD_VERSION: Final = 100
"""The same for every version of a CustomResourceDefinition, so that the comparison of versions decides."""


def group_priority(backend: Backend, group_version: GroupVersion) -> int:
    """The highest comes first."""
    stated, _ = backend.priorities_of(group_version)
    if stated is not None:
        return stated
    parts = split(group_version)
    return BUILT_IN_GROUPS.get(parts[0], DEFAULT_GROUP) if parts else DEFAULT_GROUP


def version_priority(backend: Backend, group_version: GroupVersion) -> int:
    """The highest comes first within its group."""
    _, stated = backend.priorities_of(group_version)
    if stated is not None:
        return stated
    return CRD_VERSION if backend.kind is BackendKind.CRDS else DEFAULT_VERSION
