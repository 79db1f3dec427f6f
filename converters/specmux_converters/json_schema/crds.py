"""``crds.yaml``: CustomResourceDefinitions as far as documents determine them, for tools that read only
those.

Documents lack short names, categories, printer columns, conversion, and the paths of the scale subresource.
Of several versions, the one that Kubernetes prefers by name is marked as stored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any, Final

import orjson

from specmux_converters.crd.keywords import DEFINED_FIELDS
from specmux_converters.document import Document
from specmux_converters.group_versions import GroupVersion
from specmux_converters.json_schema.document import DocumentSchemas
from specmux_converters.json_schema.kinds import Kind
from specmux_converters.json_values import mapping
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.order import version_rank
from specmux_converters.references import component_of

_COLLECTION: Final = re.compile(
    r"/apis/[^/]+/[^/]+/(?P<namespaced>namespaces/\{namespace\}/)?(?P<plural>[a-z0-9-]+)"
)
_ROOT_ONLY: Final = ("x-kubernetes-group-version-kind", "x-kubernetes-selectable-fields")


@dataclass(slots=True)
class _Resource:
    """A definition being built."""

    group: str
    plural: str
    kind: str
    is_namespaced: bool = False
    versions: dict[str, Document] = field(default_factory=dict)


def custom_definitions(schemas: Mapping[GroupVersion, DocumentSchemas]) -> list[Document]:
    """One for each custom resource, sorted by name."""
    found: dict[tuple[str, str], _Resource] = {}
    for key in sorted(schemas):
        if schemas[key].has_custom_resources:
            _add(schemas[key], found)
    return [_definition(found[place]) for place in sorted(found)]


def crds_yaml(schemas: Mapping[GroupVersion, DocumentSchemas]) -> bytes:
    """A YAML stream of JSON documents, which are valid YAML and much faster to write."""
    return b"".join(b"---\n%s\n" % orjson.dumps(each) for each in custom_definitions(schemas))


def _add(schemas: DocumentSchemas, found: dict[tuple[str, str], _Resource]) -> None:
    kinds = {kind.kind: kind for kind in schemas.kinds}
    for plural, kind, is_namespaced, has_status in _resources(schemas.document, kinds):
        place = kind.group, plural
        resource = found.setdefault(place, _Resource(kind.group, plural, kind.kind))
        resource.is_namespaced |= is_namespaced
        resource.versions[kind.version] = _version(
            kind, schemas.schemas[kind.component], has_status=has_status
        )


def _resources(document: Document, kinds: Mapping[str, Kind]) -> Iterator[tuple[str, Kind, bool, bool]]:
    """Plural, kind, whether it is namespaced, and whether it has a status subresource."""
    paths = mapping(document.get("paths"))
    for path, item in paths.items():
        match = _COLLECTION.fullmatch(path)
        post = mapping(item).get("post")
        if match is None or not isinstance(post, dict):
            continue
        match post.get("x-kubernetes-group-version-kind"):
            case {"kind": str(name)} if name in kinds:
                has_status = f"{path}/{{name}}/status" in paths
                yield match["plural"], kinds[name], match["namespaced"] is not None, has_status


def _version(kind: Kind, schema: Mapping[str, Any], *, has_status: bool) -> Document:
    root = {key: value for key, value in schema.items() if key not in _ROOT_ONLY}
    version: Document = {
        "name": kind.version,
        "served": True,
        "schema": {"openAPIV3Schema": _without_references(root)},
    }
    if has_status:
        version["subresources"] = {"status": {}}
    selectable = schema.get("x-kubernetes-selectable-fields")
    if isinstance(selectable, list):
        version["selectableFields"] = [
            {"jsonPath": f".{each['fieldPath']}"} for each in selectable if isinstance(each, dict)
        ]
    return version


def _without_references(schema: Any) -> Any:
    """Definitions have no references: the target is metadata, which may only be declared as an object, or as
    the definition had it."""
    if isinstance(schema, list):
        return [_without_references(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if component_of(schema) is not None:
        return {"type": "object"}
    if DEFINED_FIELDS in schema:
        defined = {**schema["properties"], **schema[DEFINED_FIELDS]}
        schema = {key: schema[key] for key in schema if key != DEFINED_FIELDS} | {"properties": defined}
    return {key: _without_references(value) for key, value in schema.items()}


def _definition(resource: _Resource) -> Document:
    versions = sorted(resource.versions, key=version_rank)
    names = {
        "plural": resource.plural,
        "singular": resource.kind.lower(),
        "kind": resource.kind,
        "listKind": f"{resource.kind}List",
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "names": names,
            "scope": "Namespaced" if resource.is_namespaced else "Cluster",
            "versions": [{**resource.versions[name], "storage": name == versions[0]} for name in versions],
        },
    }
