"""One side of a comparison: group-versions with their resources, operations and kinds.

Filled from documents (``document_contents``) and CustomResourceDefinitions (``manifests``); nothing is
compared here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from typing import Any

from specmux_converters.group_versions import GroupVersion
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.differences.schema.views import ComponentSchemas

OUTSIDE = GroupVersion("")
"""Group-version of operations that belong to none ("/version/")."""


class Basis(Enum):
    """How authoritative a schema is."""

    ENFORCED = "enforced"
    """An apiserver validates, defaults and prunes by it: CustomResourceDefinitions."""
    DESCRIBED = "described"
    """Documentation beside the code that decides."""


@dataclass(slots=True)
class ServedKind:
    """A kind that requests or responses carry."""

    name: str
    schema: Any
    schemas: ComponentSchemas
    is_written: bool = False
    is_read: bool = False
    is_read_by_name: bool = False
    is_manifest: bool = False
    """From a CustomResourceDefinition, which describes no ``metadata``."""

    @property
    def is_stored(self) -> bool:
        return self.is_written and self.is_read_by_name

    @property
    def is_list(self) -> bool:
        """Whether it is a list; its items are compared as a kind of their own."""
        return self.name.endswith("List") and not self.is_written


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of a document, including what its path item declares for all operations."""

    path: str
    template: str
    """The path without parameter names: the key to match operations by."""
    method: str
    kind: str
    """From ``x-kubernetes-group-version-kind``, otherwise ""."""
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
"""Keyed by template and method."""


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
    """Fields behind the scale subresource, known from a definition only."""
    is_manifest: bool = False
    """From a definition: the operations are unknown."""


@dataclass(slots=True)
class ServedGroupVersion:
    name: GroupVersion
    basis: Basis
    resources: dict[str, ServedResource] = field(default_factory=dict)
    operations: Operations = field(default_factory=dict)
    """Operations that belong to no resource."""
    kinds: dict[tuple[str, str], ServedKind] = field(default_factory=dict)
    """Keyed by name and group."""


@dataclass(frozen=True, slots=True)
class StoredVersions:
    """The versions that objects of a CustomResourceDefinition are stored in, and the versions it defines."""

    kind: str
    stored: frozenset[str]
    defined: frozenset[str]
    by_webhook: bool = False
    """Whether a webhook converts between versions."""


@dataclass(frozen=True, slots=True)
class ServedSide:
    """One side of a comparison."""

    group_versions: dict[GroupVersion, ServedGroupVersion] = field(default_factory=dict)
    stored_versions: dict[tuple[str, str], StoredVersions] = field(default_factory=dict)
    """Keyed by group and plural."""

    def group_version(self, name: GroupVersion, basis: Basis) -> ServedGroupVersion:
        return self.group_versions.setdefault(name, ServedGroupVersion(name, basis))
