"""What can be told of a built-in object beside its types: its metadata, and all of a definition. The rest is
code in an apiserver."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from specmux_schemas.validation.decoding.typed_nodes import Struct
from specmux_schemas.validation.definitions.definition_fault import DEFINITION
from specmux_schemas.validation.kinds import TypedKind
from specmux_schemas.validation.metadata.object_metadata import metadata_errors
from specmux_schemas.validation.metadata.updated_metadata import metadata_of, update_errors
from specmux_schemas.validation.report import Check, Severity, Violation

_SUBDOMAIN_GROUPS: Final = frozenset(
    (
        *("admissionregistration.k8s.io", "apps", "autoscaling", "batch", "discovery.k8s.io"),
        *("flowcontrol.apiserver.k8s.io", "networking.k8s.io", "node.k8s.io", "policy", "storage.k8s.io"),
    )
)
_SUBDOMAIN_KINDS: Final = frozenset(
    (
        *(
            "ConfigMap",
            "Endpoints",
            "Event",
            "LimitRange",
            "Node",
            "PersistentVolume",
            "PersistentVolumeClaim",
        ),
        *("Pod", "PodTemplate", "ReplicationController", "ResourceQuota", "Secret", "ServiceAccount"),
    )
)
"""Of the core group. Services and namespaces are named by stricter rules, roles by looser ones."""
_SUBDOMAIN_OTHERS: Final = frozenset(
    (("coordination.k8s.io", "Lease"), ("scheduling.k8s.io", "PriorityClass"))
)
"""By group and kind (pkg/apis/*/validation)."""


def check_typed(
    value: dict[str, Any], kind: TypedKind, old: dict[str, Any] | None = None, *, minor: int
) -> Iterator[Violation]:
    """``value`` was decoded; ``old`` is the stored object of an update. ``minor`` is the release of
    Kubernetes."""
    node = kind.node
    inner = node.fields.get("metadata") if isinstance(node, Struct) else None
    if not isinstance(inner, Struct) or inner.name != "ObjectMeta":
        return
    metadata = metadata_of(value)
    errors = metadata_errors(
        metadata,
        needs_name=kind.needs_name,
        is_subdomain=None if kind.kind == DEFINITION else _is_subdomain(kind),
    )
    for error in (*errors, *(update_errors(metadata, metadata_of(old)) if old is not None else ())):
        yield Violation(Severity.ERROR, Check.METADATA, error.path, error.text)
    if kind.kind == DEFINITION:
        from specmux_schemas.validation.definitions.faults import definition_faults

        for fault in definition_faults(value, minor=minor, old=old):
            yield Violation(Severity.ERROR, Check.DEFINITION, fault.path, fault.text)


def _is_subdomain(kind: TypedKind) -> bool:
    group, name = kind.kind.group, kind.kind.kind
    if not group:
        return name in _SUBDOMAIN_KINDS
    return group in _SUBDOMAIN_GROUPS or (group, name) in _SUBDOMAIN_OTHERS
