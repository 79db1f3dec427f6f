"""The order of groups and versions, which is what clients take for preference. Pure.

A group's and a version's priority come from its APIService; what has none gets what kube-aggregator would
give it. Equal versions compare by maturity and number, equal groups by name.
"""

from __future__ import annotations

import re
from typing import Final

from specmux_aggregator.model.backend import Backend, Kind
from specmux_converters.group_versions import GroupVersion
from specmux_schemas.resources import split

DEFAULT_GROUP: Final = 1000
DEFAULT_VERSION: Final = 15
CRD_VERSION: Final = 100
"""Of every version of a CustomResourceDefinition: so the comparison of versions decides."""

_BUILT_IN: Final = (
    (20001, "apiregistration.k8s.io"),
    (18000, ""),
    (17900, "extensions"),
    (17800, "apps"),
    (17750, "events.k8s.io"),
    (17700, "authentication.k8s.io"),
    (17600, "authorization.k8s.io"),
    (17500, "autoscaling"),
    (17400, "batch"),
    (17300, "certificates.k8s.io"),
    (17200, "networking.k8s.io"),
    (17100, "policy"),
    (17000, "rbac.authorization.k8s.io"),
    (16800, "storage.k8s.io"),
    (16700, "admissionregistration.k8s.io"),
    (16700, "apiextensions.k8s.io"),
    (16600, "scheduling.k8s.io"),
    (16500, "coordination.k8s.io"),
    (16300, "node.k8s.io"),
    (16200, "discovery.k8s.io"),
    (16100, "flowcontrol.apiserver.k8s.io"),
    (16000, "internal.apiserver.k8s.io"),
    (15900, "resource.k8s.io"),
    (15800, "storagemigration.k8s.io"),
)
BUILT_IN_GROUPS: Final = {group: priority for priority, group in _BUILT_IN}
"""What kube-apiserver registers its own groups with: without it ``kubectl get ingress`` behind two backends
could mean another group's."""

_VERSION: Final = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?")
_MATURITY: Final = {"alpha": 0, "beta": 1, None: 2}


def version_rank(version: str) -> tuple[int, int, int, int, tuple[int, ...]]:
    """Sorts v10 before v2 before v1beta2 before v1beta1 before v1alpha1, and all these before any other name,
    which sort among themselves by their letters."""
    match = _VERSION.fullmatch(version)
    if match is None or len(version) > 40:
        return (1, 0, 0, 0, tuple(map(ord, version)))
    return (0, -_MATURITY[match[2]], -int(match[1]), -int(match[3] or 0), ())


def group_priority(backend: Backend, group_version: GroupVersion) -> int:
    """The highest goes first."""
    stated, _ = backend.priorities_of(group_version)
    if stated is not None:
        return stated
    parts = split(group_version)
    return BUILT_IN_GROUPS.get(parts[0], DEFAULT_GROUP) if parts else DEFAULT_GROUP


def version_priority(backend: Backend, group_version: GroupVersion) -> int:
    """The highest goes first within its group."""
    _, stated = backend.priorities_of(group_version)
    if stated is not None:
        return stated
    return CRD_VERSION if backend.kind is Kind.CRDS else DEFAULT_VERSION
