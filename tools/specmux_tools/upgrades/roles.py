"""Resources that a Role or ClusterRole names and that are no longer served."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from specmux_converters.group_versions import split
from specmux_converters.resources import GroupVersionKind
from specmux_tools.differences.served import ServedSide
from specmux_tools.validation.definitions.definition_fault import objects
from specmux_tools.validation.report import Check, Severity, Violation

_GROUP: Final = "rbac.authorization.k8s.io"
_KINDS: Final = ("ClusterRole", "Role")


def resources_of(side: ServedSide) -> frozenset[tuple[str, str]]:
    """Group and plural of each resource, and of each subresource as ``pods/log``."""
    found: set[tuple[str, str]] = set()
    for name, served in side.group_versions.items():
        group, _ = split(name) or ("", "")
        for plural, resource in served.resources.items():
            found.add((group, plural))
            found |= {(group, f"{plural}/{each}") for each in resource.subresources}
    return frozenset(found)


def is_role(kind: GroupVersionKind) -> bool:
    return kind.group == _GROUP and kind.kind in _KINDS


def gone_resources(
    value: Mapping[str, Any], before: frozenset[tuple[str, str]], after: frozenset[tuple[str, str]]
) -> Iterator[Violation]:
    for index, rule in enumerate(objects(value.get("rules"))):
        groups, resources = (rule.get(key) for key in ("apiGroups", "resources"))
        if not (isinstance(groups, list) and isinstance(resources, list)):
            continue
        for place, plural in enumerate(resources):
            named = [(group, plural) for group in groups if (group, plural) in before]
            for group, _ in [each for each in named if each not in after]:
                path = ("rules", index, "resources", place)
                said = f"{plural} of {group or 'the core group'} is not served any more"
                text = f"rules[{index}].resources[{place}]: {said}"
                yield Violation(Severity.WARNING, Check.SCHEMA, path, text)
