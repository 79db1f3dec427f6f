"""Kinds that Kubernetes deprecates and removes, and suggestions for a kind that was not found: another
version, a newer API, another spelling.

Removed APIs: https://kubernetes.io/docs/reference/using-api/deprecation-guide. Deprecated ones are those of
k8s.io/api 0.30 to 0.37 (APILifecycleDeprecated and its like).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pkgutil import get_data
from typing import Final

from specmux_converters.document import Document
from specmux_converters.json_values import mapping, objects, text, within
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.releases import PREVIEW, minor_release
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


def _read_table(name: str) -> dict[tuple[str, str], list[str]]:
    """Each line has a group-version, its kinds, and what is said of them."""
    found = {}
    for line in (get_data(__package__, name) or b"").decode().splitlines():
        version, kinds, *said = line.split()
        found.update(dict.fromkeys(((version, kind) for kind in kinds.split(",")), said))
    return found


REMOVED: Final[Mapping[tuple[str, str], Removal]] = {
    kind: Removal(*said) for kind, said in _read_table("removed_kinds.txt").items()
}

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
    same = [each for each in kinds if each.kind == wanted.kind and each != wanted]
    removal = REMOVED.get((wanted.api_version, wanted.kind))
    if removal is not None:
        return _place_of_replacement(wanted, removal)
    if same:
        version = same[0].api_version
        return KindPlace(f"{version} {wanted.kind}", f"{version} has {wanted.kind}")
    here = [each.kind for each in kinds if each.api_version == wanted.api_version]
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
    is_here = found.api_version == wanted.api_version
    name = found.kind if is_here else f"{found.api_version} {found.kind}"
    return KindPlace(name, f"did you mean {name}?")


def _place_of_replacement(wanted: GroupVersionKind, removal: Removal) -> KindPlace:
    gone = f"Kubernetes {removal.removed} removed {wanted.api_version} {wanted.kind}"
    if not removal.now:
        return KindPlace("", f"{gone}, and nothing replaces it")
    since = f" since {removal.since}" if removal.since else ""
    return KindPlace(f"{removal.now} {wanted.kind}", f"{wanted.kind} is in {removal.now}{since}; {gone}")


def deprecation_of(
    kind: GroupVersionKind, definitions: Iterable[Document], *, release: str | None
) -> str | None:
    """The text of the Warning that an apiserver of ``release`` sends with such an object; None for none.

    ``definitions``: those that may define the kind; ``release`` None is the newest."""
    for definition in definitions:
        spec = mapping(definition.get("spec"))
        if (spec.get("group"), within(spec, "names").get("kind")) == (kind.group, kind.kind):
            for version in objects(spec.get("versions")):
                if version.get("name") == kind.version and version.get("deprecated") is True:
                    said = f"{kind.group}/{kind.version} {kind.kind} is deprecated"
                    return text(version.get("deprecationWarning")) or said
            return None
    return _built_in(kind, minor_release(release, newest=PREVIEW))


def _built_in(kind: GroupVersionKind, minor: int) -> str | None:
    version = kind.api_version
    said = _lifecycles().get((version, kind.kind))
    if said is None:
        return None
    deprecated, removed, replacement, renamed = (*said, "", "", "")[:4]
    if int(deprecated.partition(".")[2]) > minor:
        return None
    gone = f", unavailable in v{removed}+" if removed and removed != "-" else ""
    step = f"; use {replacement} {renamed or kind.kind}" if replacement else ""
    return f"{version} {kind.kind} is deprecated in v{deprecated}+{gone}{step}"


@cache
def _lifecycles() -> Mapping[tuple[str, str], list[str]]:
    """Since when a kind is deprecated, the release that removes it or "-", what replaces it, and its kind
    where that is another."""
    return _read_table("deprecated_kinds.txt")
