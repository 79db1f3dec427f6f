"""The order of groups and versions, which is what clients take for preference.

What kube-apiserver registers its own groups with, and kube-aggregator's comparison of versions
(``k8s.io/apimachinery/pkg/version``: ``CompareKubeAwareVersionStrings``).
"""

from __future__ import annotations

from typing import Final

from specmux_converters.group_versions import GroupVersion, split
from specmux_converters.lazy.patterns import pattern

DEFAULT_GROUP: Final = 1000

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
"""The priorities of kube-apiserver's own groups: without them, ``kubectl get ingress`` behind two backends
could mean another group's."""

_VERSION: Final = pattern(r"v([0-9]+)(?:(alpha|beta)([0-9]+))?")
_NUMBER_MAX: Final = 2**63 - 1
"""Go's int: a name with a greater number is not such a version (apimachinery, pkg/version/helpers.go)."""
_MATURITY: Final = {"alpha": 0, "beta": 1, None: 2}


def version_rank(version: str) -> tuple[int, int, int, int, tuple[int, ...]]:
    """Sorts v10 before v2 before v1beta2 before v1beta1 before v1alpha1, and all these before other names,
    which sort alphabetically, as do different spellings of one version (v1, v01)."""
    match = _VERSION.fullmatch(version)
    numbers = [_number(digits or "0") for digits in match.group(1, 3)] if match else []
    if match is None or max(numbers) > _NUMBER_MAX:
        return (1, 0, 0, 0, tuple(map(ord, version)))
    major, minor = numbers
    return (0, -_MATURITY[match[2]], -major, -minor, tuple(map(ord, version)))


def _number(digits: str) -> int:
    significant = digits.lstrip("0")
    return int(significant or "0") if len(significant) < 20 else _NUMBER_MAX + 1


def maturity(version: str) -> int:
    """0 for a stable version, 1 for a beta, 2 for an alpha; other names count as stable."""
    match = _VERSION.fullmatch(version)
    return 2 - _MATURITY[match[2]] if match else 0


def discovery_rank(group_version: GroupVersion) -> tuple[int, str, tuple[object, ...]]:
    """Sort key of discovery in the absence of APIServices; keys that are not group-versions come last."""
    parts = split(group_version)
    if parts is None:
        return (1, group_version, ())
    group, version = parts
    return (-BUILT_IN_GROUPS.get(group, DEFAULT_GROUP), group, version_rank(version))
