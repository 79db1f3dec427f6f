"""What one side of a comparison serves: group-versions with their resources, operations and kinds.

Nothing here is compared. Documents (``document_contents``) and CustomResourceDefinitions (``manifests``) are
read into it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from typing import Any

from specmux_converters.deferred_dataclasses import dataclass
from specmux_converters.group_versions import GroupVersion
from specmux_schemas.differences.schema.views import ComponentSchemas

OUTSIDE = GroupVersion("")
"""Of operations that belong to no group-version ("/version/")."""


class Basis(Enum):
    """What a schema is worth."""

    ENFORCED = "enforced"
    """An apiserver validates, defaults and prunes by it: CustomResourceDefinitions."""
    DESCRIBED = "described"
    """Somebody wrote it down beside the code that decides."""


@dataclass(slots=True)
class ServedKind:
    """A kind that requests or answers carry."""

    name: str
    schema: Any
    schemas: ComponentSchemas
    is_written: bool = False
    is_read: bool = False
    is_read_by_name: bool = False
    is_manifest: bool = False
    """Read off a CustomResourceDefinition, which says nothing of ``metadata``."""

    @property
    def is_stored(self) -> bool:
        return self.is_written and self.is_read_by_name

    @property
    def is_list(self) -> bool:
        """Whether its items are objects of another kind, which is compared by itself."""
        return self.name.endswith("List") and not self.is_written


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a document, with what its path item says for all of them."""

    path: str
    template: str
    """The path without the names of its parameters: what it is found by."""
    method: str
    kind: str
    """By ``x-kubernetes-group-version-kind``, else ""."""
    subject: Mapping[str, Any]
    item: Mapping[str, Any]
    document: Mapping[str, Any]
    schemas: ComponentSchemas

    @property
    def what(self) -> str:
        return f"{self.method.upper()} {self.path}"

    @property
    def shown_kind(self) -> str:
        return self.kind or self.what

    @property
    def is_reading(self) -> bool:
        return self.method in ("get", "head", "options", "trace")


Operations = dict[tuple[str, str], Operation]
"""By template and method."""


@dataclass(slots=True)
class ServedResource:
    """A resource of a group-version, with its subresources."""

    plural: str
    kind: str = ""
    is_namespaced: bool = False
    operations: Operations = field(default_factory=dict)
    subresources: dict[str, Operations] = field(default_factory=dict)
    is_deprecated: bool = False
    scale_paths: Mapping[str, str] = field(default_factory=dict)
    """Fields that the scale subresource stands for, which only a definition says."""
    is_manifest: bool = False
    """Its operations are not known."""


@dataclass(slots=True)
class ServedGroupVersion:
    name: GroupVersion
    basis: Basis
    resources: dict[str, ServedResource] = field(default_factory=dict)
    operations: Operations = field(default_factory=dict)
    """Those of no resource."""
    kinds: dict[tuple[str, str], ServedKind] = field(default_factory=dict)
    """By name, and the group it is of."""


@dataclass(frozen=True, slots=True)
class StoredVersions:
    """Versions that objects of a CustomResourceDefinition are stored as, and those that it has."""

    kind: str
    stored: frozenset[str]
    defined: frozenset[str]
    by_webhook: bool = False
    """Whether a webhook converts objects between several versions."""


@dataclass(frozen=True, slots=True)
class ServedSide:
    """One side."""

    group_versions: dict[GroupVersion, ServedGroupVersion] = field(default_factory=dict)
    stored_versions: dict[tuple[str, str], StoredVersions] = field(default_factory=dict)
    """By group and plural."""

    def group_version(self, name: GroupVersion, basis: Basis) -> ServedGroupVersion:
        return self.group_versions.setdefault(name, ServedGroupVersion(name, basis))
