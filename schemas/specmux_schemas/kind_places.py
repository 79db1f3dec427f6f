"""Where a kind lives that is not where it was looked for: another version, a newer API, another spelling.

Removed APIs: https://kubernetes.io/docs/reference/using-api/deprecation-guide.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from specmux_converters.deferred_dataclasses import dataclass
from specmux_schemas.explanation.similar import similar_to
from specmux_schemas.resources import GroupVersionKind, api_version


@dataclass(frozen=True, slots=True)
class Removal:
    """A group-version that Kubernetes no longer serves."""

    removed: str
    """The release."""
    now: str = ""
    """The group-version that has the kind; "" where nothing replaces it."""
    since: str = ""


@dataclass(frozen=True, slots=True)
class KindPlace:
    """``name`` is what may have been meant, as short as it is clear; ``text`` a sentence about it."""

    name: str
    text: str


def _removed(
    old: str, kinds: str, removed: str, now: str = "", since: str = ""
) -> Iterator[tuple[tuple[str, str], Removal]]:
    for kind in kinds.split():
        yield (old, kind), Removal(removed, now, since)


_WEBHOOKS: Final = "MutatingWebhookConfiguration ValidatingWebhookConfiguration"
_REVIEWS: Final = (
    "LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview"
)
_ROLES: Final = "ClusterRole ClusterRoleBinding Role RoleBinding"
_FLOWS: Final = "FlowSchema PriorityLevelConfiguration"
_FLOW_GROUP: Final = "flowcontrol.apiserver.k8s.io"
_RBAC: Final = "rbac.authorization.k8s.io"

REMOVED: Final[Mapping[tuple[str, str], Removal]] = dict(
    (
        *_removed(f"{_FLOW_GROUP}/v1beta3", _FLOWS, "1.32", f"{_FLOW_GROUP}/v1", "1.29"),
        *_removed(f"{_FLOW_GROUP}/v1beta2", _FLOWS, "1.29", f"{_FLOW_GROUP}/v1", "1.29"),
        *_removed(f"{_FLOW_GROUP}/v1beta1", _FLOWS, "1.26", f"{_FLOW_GROUP}/v1", "1.29"),
        *_removed("storage.k8s.io/v1beta1", "CSIStorageCapacity", "1.27", "storage.k8s.io/v1", "1.24"),
        *_removed("autoscaling/v2beta2", "HorizontalPodAutoscaler", "1.26", "autoscaling/v2", "1.23"),
        *_removed("autoscaling/v2beta1", "HorizontalPodAutoscaler", "1.25", "autoscaling/v2", "1.23"),
        *_removed("batch/v1beta1", "CronJob", "1.25", "batch/v1", "1.21"),
        *_removed("batch/v2alpha1", "CronJob", "1.21", "batch/v1", "1.21"),
        *_removed("discovery.k8s.io/v1beta1", "EndpointSlice", "1.25", "discovery.k8s.io/v1", "1.21"),
        *_removed("events.k8s.io/v1beta1", "Event", "1.25", "events.k8s.io/v1", "1.19"),
        *_removed("policy/v1beta1", "PodDisruptionBudget", "1.25", "policy/v1", "1.21"),
        *_removed("policy/v1beta1", "PodSecurityPolicy", "1.25"),
        *_removed("node.k8s.io/v1beta1", "RuntimeClass", "1.25", "node.k8s.io/v1", "1.20"),
        *_removed(
            "admissionregistration.k8s.io/v1beta1",
            _WEBHOOKS,
            "1.22",
            "admissionregistration.k8s.io/v1",
            "1.16",
        ),
        *_removed(
            "apiextensions.k8s.io/v1beta1",
            "CustomResourceDefinition",
            "1.22",
            "apiextensions.k8s.io/v1",
            "1.16",
        ),
        *_removed(
            "apiregistration.k8s.io/v1beta1", "APIService", "1.22", "apiregistration.k8s.io/v1", "1.10"
        ),
        *_removed("authentication.k8s.io/v1beta1", "TokenReview", "1.22", "authentication.k8s.io/v1", "1.6"),
        *_removed("authorization.k8s.io/v1beta1", _REVIEWS, "1.22", "authorization.k8s.io/v1", "1.6"),
        *_removed(
            "certificates.k8s.io/v1beta1",
            "CertificateSigningRequest",
            "1.22",
            "certificates.k8s.io/v1",
            "1.19",
        ),
        *_removed("coordination.k8s.io/v1beta1", "Lease", "1.22", "coordination.k8s.io/v1", "1.14"),
        *_removed("extensions/v1beta1", "Ingress", "1.22", "networking.k8s.io/v1", "1.19"),
        *_removed(
            "networking.k8s.io/v1beta1", "Ingress IngressClass", "1.22", "networking.k8s.io/v1", "1.19"
        ),
        *_removed(f"{_RBAC}/v1beta1", _ROLES, "1.22", f"{_RBAC}/v1", "1.8"),
        *_removed(f"{_RBAC}/v1alpha1", _ROLES, "1.23", f"{_RBAC}/v1", "1.8"),
        *_removed("scheduling.k8s.io/v1beta1", "PriorityClass", "1.22", "scheduling.k8s.io/v1", "1.14"),
        *_removed("scheduling.k8s.io/v1alpha1", "PriorityClass", "1.17", "scheduling.k8s.io/v1", "1.14"),
        *_removed(
            "storage.k8s.io/v1beta1",
            "CSIDriver CSINode StorageClass VolumeAttachment",
            "1.22",
            "storage.k8s.io/v1",
        ),
        *_removed("extensions/v1beta1", "NetworkPolicy", "1.16", "networking.k8s.io/v1", "1.8"),
        *_removed("extensions/v1beta1", "DaemonSet Deployment ReplicaSet", "1.16", "apps/v1", "1.9"),
        *_removed("extensions/v1beta1", "PodSecurityPolicy", "1.16"),
        *_removed("apps/v1beta2", "DaemonSet Deployment ReplicaSet StatefulSet", "1.16", "apps/v1", "1.9"),
        *_removed("apps/v1beta1", "Deployment StatefulSet", "1.16", "apps/v1", "1.9"),
    )
)

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
    f"{_RBAC}/v1": tuple(_ROLES.split()),
    "storage.k8s.io/v1": ("CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass", "VolumeAttachment"),
    "apiextensions.k8s.io/v1": ("CustomResourceDefinition",),
    "admissionregistration.k8s.io/v1": tuple(_WEBHOOKS.split()),
    "scheduling.k8s.io/v1": ("PriorityClass",),
    "coordination.k8s.io/v1": ("Lease",),
    "discovery.k8s.io/v1": ("EndpointSlice",),
}
"""Kinds that most manifests are of, for whoever does not know all that a server has."""


def built_in_kinds() -> Iterator[GroupVersionKind]:
    for version, kinds in BUILT_IN.items():
        group, _, name = version.rpartition("/")
        yield from (GroupVersionKind(group, name, kind) for kind in kinds)


def place_of(wanted: GroupVersionKind, known: Iterable[GroupVersionKind]) -> KindPlace | None:
    """Where the kind is that is not at ``wanted``; None where nothing resembles it. ``known``: in order of
    preference."""
    kinds = list(known)
    asked = api_version(wanted.group, wanted.version)
    same = [each for each in kinds if each.kind == wanted.kind and each != wanted]
    removal = REMOVED.get((asked, wanted.kind))
    if removal is not None:
        return _replaced(wanted, removal, asked)
    if same:
        version = api_version(same[0].group, same[0].version)
        return KindPlace(f"{version} {wanted.kind}", f"{version} has {wanted.kind}")
    here = [each.kind for each in kinds if (each.group, each.version) == (wanted.group, wanted.version)]
    exact = [each for each in kinds if each.kind.casefold() == wanted.kind.casefold()]
    meant = [each for each in exact if each.kind in here] or exact
    if meant:
        return _meant(wanted, meant[0])
    similar = similar_to(wanted.kind, here)
    if similar:
        return KindPlace(similar[0], f"did you mean {' or '.join(similar)}?")
    of_group = [each for each in kinds if each.group == wanted.group]
    elsewhere = similar_to(wanted.kind, (each.kind for each in of_group))
    found = next((each for each in of_group if elsewhere and each.kind == elsewhere[0]), None)
    return _meant(wanted, found) if found is not None else None


def _meant(wanted: GroupVersionKind, found: GroupVersionKind) -> KindPlace:
    version = api_version(found.group, found.version)
    is_here = (found.group, found.version) == (wanted.group, wanted.version)
    name = found.kind if is_here else f"{version} {found.kind}"
    return KindPlace(name, f"did you mean {name}?")


def _replaced(wanted: GroupVersionKind, removal: Removal, asked: str) -> KindPlace:
    gone = f"Kubernetes {removal.removed} removed {asked} {wanted.kind}"
    if not removal.now:
        return KindPlace("", f"{gone}, and nothing replaces it")
    since = f" since {removal.since}" if removal.since else ""
    return KindPlace(f"{removal.now} {wanted.kind}", f"{wanted.kind} is in {removal.now}{since}; {gone}")
