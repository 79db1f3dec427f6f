"""One side of a comparison: group-versions with their resources, operations and kinds.

Filled from documents (``add_document``) and CustomResourceDefinitions (``manifests``); nothing is compared
here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from enum import Enum
from typing import Any, Final

from specmux_converters.document import Document, is_of_custom_resources
from specmux_converters.group_versions import GroupVersion, group_version_of, split
from specmux_converters.json_values import mapping, members
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.references import METHODS, resolve_part
from specmux_converters.synthesis import ResourcePath, place_of
from specmux_tools.differences.schema.views import ComponentSchemas
from specmux_tools.kinds import group_version_kinds

OUTSIDE = GroupVersion("")
"""Group-version of operations that belong to none ("/version/")."""


class Basis(Enum):
    """The authority of a schema."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedOperation:
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


Operations = dict[tuple[str, str], ServedOperation]
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

    def kind(self, key: tuple[str, str], schema: Any, schemas: ComponentSchemas) -> ServedKind:
        return self.kinds.setdefault(key, ServedKind(key[0], schema, schemas))


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


_PARAMETER: Final = re.compile(r"\{[^{}/]*\}")


def add_document(served: ServedSide, document: Document, *, by_name: bool = False) -> None:
    """Adds the contents of a document; existing entries of the same name stay.

    ``by_name``: adds only the name of a group-version, which suffices if the other side lacks it.
    """
    basis = Basis.ENFORCED if is_of_custom_resources(document) else Basis.DESCRIBED
    schemas = ComponentSchemas(document)
    for path, item in members(document.get("paths")):
        key = group_version_of(path)
        is_inside = key is not None and split(key) is not None
        group_version = served.group_version(key if key and is_inside else OUTSIDE, basis)
        if by_name and is_inside:
            continue
        place = place_of(path, f"/{group_version.name}/") if is_inside else None
        for operation in _operations(path, item, document, schemas):
            _add(group_version, place, operation)


def _operations(
    path: str, item: Mapping[str, Any], document: Document, schemas: ComponentSchemas
) -> Iterator[ServedOperation]:
    template = _PARAMETER.sub("{}", path)
    for method in METHODS:
        subject = item.get(method)
        if isinstance(subject, dict):
            kinds = group_version_kinds(subject) if "x-kubernetes-group-version-kind" in subject else ()
            yield ServedOperation(
                path=path,
                template=template,
                method=method,
                kind=kinds[0].kind if kinds else "",
                subject=subject,
                item=item,
                document=document,
                schemas=schemas,
            )


def _add(group_version: ServedGroupVersion, place: ResourcePath | None, operation: ServedOperation) -> None:
    if place is None or not operation.kind:
        group_version.operations.setdefault((operation.template, operation.method), operation)
    else:
        _add_to_resource(group_version, place, operation)
    is_object = place is not None and not place.is_collection and not place.subresource and not place.is_watch
    for where, schema in _bodies(operation):
        _carry(group_version, operation, where, schema, is_by_name=is_object and operation.method == "get")
    if operation.method == "patch" and is_object:  # which carries its kind in parts
        group = (split(group_version.name) or ("", ""))[0]
        kind = group_version.kinds.get((operation.kind, group))
        if kind is not None:
            kind.is_written = True


def _add_to_resource(
    group_version: ServedGroupVersion, place: ResourcePath, operation: ServedOperation
) -> None:
    resource = group_version.resources.setdefault(place.resource, ServedResource(place.resource))
    resource.is_namespaced |= place.is_namespaced
    if not place.subresource and (not resource.kind or operation.method == "get"):
        resource.kind = operation.kind
    operations: Operations = (
        resource.subresources.setdefault(place.subresource, {}) if place.subresource else resource.operations
    )
    operations.setdefault((operation.template, operation.method), operation)


def _bodies(operation: ServedOperation) -> Iterator[tuple[str, Any]]:
    """The schemas that the operation carries, with "request" or "response", without repetition: media types
    mostly share one reference."""
    seen = set()
    answers = mapping(operation.subject.get("responses")).values()
    parts = (("request", operation.subject.get("requestBody")), *(("response", each) for each in answers))
    for where, part in parts:
        for _, content in members(resolve_part(operation.document, part).get("content")):
            if "schema" in content:
                schema = content["schema"]
                reference = schema.get("$ref") if isinstance(schema, dict) else None
                if not isinstance(reference, str) or (where, reference) not in seen:
                    yield where, schema
                seen.add((where, reference if isinstance(reference, str) else None))


def _carry(
    group_version: ServedGroupVersion,
    operation: ServedOperation,
    where: str,
    schema: Any,
    *,
    is_by_name: bool,
) -> None:
    found = operation.schemas.kind(schema)
    if found is None:
        return
    kind = group_version.kind(found, schema, operation.schemas)
    if where == "request":
        kind.is_written = True
        return
    kind.is_read = True
    kind.is_read_by_name |= is_by_name
    if kind.name.endswith("List"):
        _carry_items(group_version, operation, schema)


def _carry_items(group_version: ServedGroupVersion, operation: ServedOperation, schema: Any) -> None:
    """A list also carries its items."""
    keywords = operation.schemas.view(schema).keywords
    items = operation.schemas.view(mapping(keywords.get("properties")).get("items")).keywords.get("items")
    found = operation.schemas.kind(items)
    if found is not None and not found[0].endswith("List"):
        group_version.kind(found, items, operation.schemas).is_read = True
