"""Permitted names of objects of built-in kinds, as a table (pkg/apis/*/validation of Kubernetes).

Every object's name is a segment of a path; these are stricter. Recorded of kube-apiserver 1.34.4 and 1.37.2
(``tests/tools/validation/recorded/names.jsonl``).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from types import MappingProxyType
from typing import Final

from specmux_converters.releases import RELAXED_SERVICES
from specmux_tools.validation.metadata.names import (
    label_1035_faults,
    label_faults,
    path_segment_faults,
    subdomain_faults,
    without_trailing_dash,
)


class NameRule(StrEnum):
    SUBDOMAIN = "subdomain"
    """RFC 1123."""
    LABEL = "label"
    """RFC 1123, without dots."""
    LABEL_1035 = "label-1035"
    """RFC 1035: begins with a letter."""
    PATH_SEGMENT = "path-segment"


_TABLE: Final = """
label         core Namespace
label         apps StatefulSet
subdomain     core ConfigMap Endpoints Event LimitRange Node PersistentVolume PersistentVolumeClaim Pod
subdomain     core PodTemplate ReplicationController ResourceQuota Secret ServiceAccount
subdomain     admissionregistration.k8s.io *
subdomain     apps *
subdomain     autoscaling *
subdomain     batch *
subdomain     coordination.k8s.io Lease
subdomain     discovery.k8s.io *
subdomain     events.k8s.io *
subdomain     flowcontrol.apiserver.k8s.io *
subdomain     networking.k8s.io Ingress IngressClass NetworkPolicy ServiceCIDR
subdomain     node.k8s.io *
subdomain     resource.k8s.io *
subdomain     scheduling.k8s.io PriorityClass
subdomain     storage.k8s.io *
"""
"""Rule, group, kinds; an asterisk stands for the other kinds of the group."""


_MOST: Final[Mapping[tuple[str, str], int]] = {("batch", "CronJob"): 52}
"""Characters of the names of objects that others are named after."""


def name_rule(group: str, kind: str, minor: int) -> NameRule:
    if (group, kind) == ("", "Service"):
        return NameRule.LABEL if RELAXED_SERVICES.is_in(minor) else NameRule.LABEL_1035
    return _RULES.get((group, kind)) or _RULES.get((group, "*")) or NameRule.PATH_SEGMENT


def length_faults(group: str, kind: str, name: str) -> list[str]:
    """Check the length of a name that is created."""
    most = _MOST.get((group, kind))
    return [f"must be no more than {most} characters"] if most is not None and len(name) > most else []


def name_faults(rule: NameRule, value: str, *, is_prefix: bool = False) -> list[str]:
    """Check a name, or a generateName."""
    if rule is NameRule.PATH_SEGMENT:
        return path_segment_faults(value, is_prefix=is_prefix)
    value = without_trailing_dash(value) if is_prefix else value
    match rule:
        case NameRule.SUBDOMAIN:
            return subdomain_faults(value)
        case NameRule.LABEL:
            return label_faults(value)
        case NameRule.LABEL_1035:
            return label_1035_faults(value)


def _rules() -> Mapping[tuple[str, str], NameRule]:
    found = {}
    for line in _TABLE.strip().splitlines():
        rule, group, *kinds = line.split()
        for kind in kinds:
            found[group.replace("core", ""), kind] = NameRule(rule)
    return MappingProxyType(found)


_RULES: Final = _rules()
