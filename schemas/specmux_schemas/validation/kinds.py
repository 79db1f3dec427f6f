"""Kinds ready to be checked against: compiled when first asked for, and kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from specmux_converters.crd.meta_schemas import META_SCHEMAS, PREFIX, reference
from specmux_converters.document import Document
from specmux_converters.group_versions import GroupVersion
from specmux_schemas.kinds import DocumentSet, KindSchema
from specmux_schemas.references import schemas_of
from specmux_schemas.resources import GroupVersionKind
from specmux_schemas.validation.structural import Structural, structural
from specmux_schemas.validation.typed import TypedSchemas
from specmux_schemas.validation.typed_nodes import Node

CUSTOM_TITLE: Final = "Kubernetes CRD Swagger"
"""Of documents whose kinds are custom resources."""

LIST: Final = GroupVersionKind("", "v1", "List")
"""In no document: what kubectl writes several objects as."""

_LIST_COMPONENT: Final = "v1.List"
_LIST_DOCUMENT: Final[Document] = {
    "components": {
        "schemas": {
            **META_SCHEMAS,
            _LIST_COMPONENT: {
                "type": "object",
                "properties": {
                    "apiVersion": {"type": "string"},
                    "kind": {"type": "string"},
                    "metadata": reference(f"{PREFIX}ListMeta"),
                    "items": {"type": "array", "items": {}},
                },
            },
        }
    }
}


@dataclass(frozen=True, slots=True)
class TypedKind:
    """A built-in kind, or one of an extension apiserver."""

    kind: GroupVersionKind
    node: Node


@dataclass(frozen=True, slots=True)
class CustomKind:
    kind: GroupVersionKind
    structural: Structural
    schema: Mapping[str, Any] = field(repr=False)
    """As it is published."""
    schemas: Mapping[str, Any] = field(repr=False)
    """The components that it refers to."""
    preserves_unknown: bool = False
    """The whole definition: ``spec.preserveUnknownFields``, which no document tells."""


class Kinds:
    """``preserving`` are the kinds of definitions whose ``spec.preserveUnknownFields`` is true."""

    def __init__(self, documents: DocumentSet, preserving: frozenset[GroupVersionKind]) -> None:
        self._documents = documents
        self._preserving = preserving
        self._typed: dict[GroupVersion, TypedSchemas] = {}
        self._found: dict[GroupVersionKind, TypedKind | CustomKind | None] = {}

    def find(self, kind: GroupVersionKind) -> TypedKind | CustomKind | None:
        if kind not in self._found:
            described = self._documents.find(kind)
            if described is not None:
                self._found[kind] = self._compiled(described)
            elif kind == LIST:
                self._found[kind] = TypedKind(kind, TypedSchemas(_LIST_DOCUMENT).node(_LIST_COMPONENT))
            else:
                return None
        return self._found[kind]

    def _compiled(self, described: KindSchema) -> TypedKind | CustomKind:
        if is_custom(described.document):
            schemas = schemas_of(described.document)
            is_preserving = described.kind in self._preserving
            return CustomKind(
                described.kind,
                structural(described.schema, schemas),
                described.schema,
                schemas,
                is_preserving,
            )
        typed = self._typed.get(described.group_version)
        if typed is None:
            typed = self._typed[described.group_version] = TypedSchemas(described.document)
        return TypedKind(described.kind, typed.node(described.component))


def is_custom(document: Document) -> bool:
    info = document.get("info")
    return isinstance(info, dict) and info.get("title") == CUSTOM_TITLE
