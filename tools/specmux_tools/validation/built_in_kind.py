"""Check a built-in object beside its types: its metadata, and all of a definition. The rest is
code in an apiserver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from specmux_converters.json_values import array, text
from specmux_tools.validation.compiled_kinds import TypedKind
from specmux_tools.validation.decoding.typed_nodes import Node, Struct
from specmux_tools.validation.definitions.definition_fault import DEFINITION
from specmux_tools.validation.field_errors import FieldError, field_path, invalid
from specmux_tools.validation.metadata.names import (
    STANDARD_FINALIZERS,
    generated_name,
    length_faults,
    name_rule,
)
from specmux_tools.validation.metadata.object_metadata import (
    metadata_errors,
    metadata_of,
    template_errors,
    update_errors,
)
from specmux_tools.validation.report import Check, Path, Severity, Violation

_POD_TEMPLATE: Final = "PodTemplateSpec"
_UNQUALIFIED: Final = "name is neither a standard finalizer name nor is it fully qualified"
_CHECKS_FINALIZERS: Final = frozenset(
    {
        "", "apps", "autoscaling", "batch", "certificates.k8s.io", "discovery.k8s.io",
        "flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io", "networking.k8s.io",
        "rbac.authorization.k8s.io", "resource.k8s.io", "scheduling.k8s.io", "storage.k8s.io",
        "storagemigration.k8s.io",
    }
)  # fmt: skip


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
        rule=None if kind.kind == DEFINITION else name_rule(kind.kind.group, kind.kind.kind, minor),
    )
    for error in (
        *errors,
        *(update_errors(metadata, metadata_of(old)) if old is not None else ()),
        *_finalizer_errors(metadata, kind),
        *_template_errors(value, node),
        *(_length_errors(metadata, kind) if old is None else ()),
    ):
        yield Violation(Severity.ERROR, Check.METADATA, error.path, error.text)
    if kind.kind == DEFINITION:
        from specmux_tools.validation.definitions.faults import definition_faults

        for fault in definition_faults(value, minor=minor, old=old):
            yield Violation(Severity.ERROR, Check.DEFINITION, fault.path, fault.text)


def _finalizer_errors(metadata: Mapping[str, Any], kind: TypedKind) -> Iterator[FieldError]:
    """Check names without a domain (core ValidateObjectMeta, which not all groups call)."""
    if kind.kind.group not in _CHECKS_FINALIZERS or kind.kind.kind == "Event":
        return
    for index, name in enumerate(array(metadata.get("finalizers"))):
        if isinstance(name, str) and "/" not in name and name not in STANDARD_FINALIZERS:
            place = f"metadata.finalizers[{index}]"
            yield FieldError(("metadata", "finalizers", index), invalid(place, name, _UNQUALIFIED))


def _length_errors(metadata: Mapping[str, Any], kind: TypedKind) -> Iterator[FieldError]:
    name = text(metadata.get("name") or generated_name(metadata))
    for fault in length_faults(kind.kind.group, kind.kind.kind, name):
        yield FieldError(("metadata", "name"), invalid("metadata.name", name, fault))


def _template_errors(value: Any, node: Node, path: Path = ()) -> Iterator[FieldError]:
    """Check templates of pods wherever they are; no template holds another."""
    if isinstance(node, Struct) and isinstance(value, dict):
        if node.name == _POD_TEMPLATE:
            metadata = value.get("metadata")
            if isinstance(metadata, dict):
                yield from template_errors(metadata, (*path, "metadata"), field_path(path))
            return
        for name, item in value.items():
            inner = node.fields.get(name)
            if inner is not None:
                yield from _template_errors(item, inner, (*path, name))
