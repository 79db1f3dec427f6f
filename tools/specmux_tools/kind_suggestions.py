"""Suggestions for a kind that was not found: another version, a newer API, another spelling.

Removed APIs: https://kubernetes.io/docs/reference/using-api/deprecation-guide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pkgutil import get_data
from typing import Final

from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.resources import GroupVersionKind
from specmux_tools.explanation.field_path import similar_to


@dataclass(frozen=True, slots=True)
class Removal:
    """A group-version that Kubernetes no longer serves."""

    removed: str
    """The release."""
    now: str = ""
    """The group-version that has the kind now; "" if nothing replaces it."""
    since: str = ""


@dataclass(frozen=True, slots=True)
class KindPlace:
    """``name``: the suggestion, as short as is unambiguous; ``text``: a sentence about it."""

    name: str
    text: str


def _removals() -> Iterator[tuple[tuple[str, str], Removal]]:
    """A line has the group-version, its kinds, and the fields of their Removal."""
    for line in (get_data(__package__, "removed_kinds.txt") or b"").decode().splitlines():
        old, kinds, *removal = line.split()
        for kind in kinds.split(","):
            yield (old, kind), Removal(*removal)


REMOVED: Final[Mapping[tuple[str, str], Removal]] = dict(_removals())

BUILT_IN: Final[Mapping[str, tuple[str, ...]]] = {
    "v1": (
        *("Binding", "ConfigMap", "Endpoints", "Event", "LimitRange", "Namespace", "Node"),
        *("PersistentVolume", "PersistentVolumeClaim", "Pod", "PodTemplate", "ReplicationController"),
        *("ResourceQuota", "Secret", "Service", "ServiceAccount"),
    ),
    "apps/v1": ("ControllerRevision", "DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"),
    "batch/v1": ("CronJob", "Job"),
    "autoscaling/v2": ("HorizontalPodAutoscaler",),
    "networking.k8s.io/v1": ("Ingress", "IngressClass", "NetworkPolicy"),
    "policy/v1": ("PodDisruptionBudget",),
    "rbac.authorization.k8s.io/v1": ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"),
    "storage.k8s.io/v1": ("CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass", "VolumeAttachment"),
    "apiextensions.k8s.io/v1": ("CustomResourceDefinition",),
    "admissionregistration.k8s.io/v1": ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"),
    "scheduling.k8s.io/v1": ("PriorityClass",),
    "coordination.k8s.io/v1": ("Lease",),
    "discovery.k8s.io/v1": ("EndpointSlice",),
}
"""Common kinds, for use when the server's kinds are unknown."""


def built_in_kinds() -> Iterator[GroupVersionKind]:
    for version, kinds in BUILT_IN.items():
        group, _, name = version.rpartition("/")
        yield from (GroupVersionKind(group, name, kind) for kind in kinds)


def place_of(wanted: GroupVersionKind, known: Iterable[GroupVersionKind]) -> KindPlace | None:
    """The place of the kind that is meant by ``wanted``; None if nothing is similar. ``known``: in order of
    preference."""
    kinds = list(known)
    asked = wanted.api_version
    same = [each for each in kinds if each.kind == wanted.kind and each != wanted]
    removal = REMOVED.get((asked, wanted.kind))
    if removal is not None:
        return _place_of_replacement(wanted, removal, asked)
    if same:
        version = same[0].api_version
        return KindPlace(f"{version} {wanted.kind}", f"{version} has {wanted.kind}")
    here = [each.kind for each in kinds if (each.group, each.version) == (wanted.group, wanted.version)]
    exact = [each for each in kinds if each.kind.casefold() == wanted.kind.casefold()]
    meant = [each for each in exact if each.kind in here] or exact
    if meant:
        return _place_of_found(wanted, meant[0])
    similar = similar_to(wanted.kind, here)
    if similar:
        return KindPlace(similar[0], f"did you mean {' or '.join(similar)}?")
    of_group = [each for each in kinds if each.group == wanted.group]
    elsewhere = similar_to(wanted.kind, (each.kind for each in of_group))
    found = next((each for each in of_group if elsewhere and each.kind == elsewhere[0]), None)
    return _place_of_found(wanted, found) if found is not None else None


def _place_of_found(wanted: GroupVersionKind, found: GroupVersionKind) -> KindPlace:
    version = found.api_version
    is_here = (found.group, found.version) == (wanted.group, wanted.version)
    name = found.kind if is_here else f"{version} {found.kind}"
    return KindPlace(name, f"did you mean {name}?")


def _place_of_replacement(wanted: GroupVersionKind, removal: Removal, asked: str) -> KindPlace:
    gone = f"Kubernetes {removal.removed} removed {asked} {wanted.kind}"
    if not removal.now:
        return KindPlace("", f"{gone}, and nothing replaces it")
    since = f" since {removal.since}" if removal.since else ""
    return KindPlace(f"{removal.now} {wanted.kind}", f"{wanted.kind} is in {removal.now}{since}; {gone}")
