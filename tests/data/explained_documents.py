"""Documents for tests of explain: one small one, and those of a release with custom resources beside them."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

from shared_data import GOLDEN, documents, load
from specmux_converters.document import Document
from specmux_converters.group_versions import GroupVersion, group_version_of, split
from specmux_converters.json_values import within
from specmux_converters.resources import APIResource, GroupVersionKind
from specmux_converters.synthesis import synthesise
from specmux_tools.explanation.text import plaintext
from specmux_tools.kinds import DocumentSet

KIND = GroupVersionKind("garden.example.org", "v1", "Bed")


def bed(**spec: Any) -> Document:
    """A document with one kind, whose spec has these properties."""
    kind = {"group": KIND.group, "version": KIND.version, "kind": KIND.kind}
    operation = {"x-kubernetes-action": "list", "x-kubernetes-group-version-kind": kind}
    soil = {
        "type": "object",
        "description": "Soil is what plants stand in.",
        "required": ["acidity"],
        "properties": {
            "acidity": {"type": "number", "description": "As pH.", "minimum": 3, "maximum": 9},
            "below": {"$ref": "#/components/schemas/Soil"},
        },
    }
    root = {
        "type": "object",
        "description": "Bed is where plants grow.",
        "x-kubernetes-group-version-kind": [kind],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": {"type": "object", "description": "What it should be.", "properties": spec},
        },
    }
    return {
        "openapi": "3.0.0",
        "paths": {"/apis/garden.example.org/v1/beds": {"get": operation}},
        "components": {"schemas": {"Bed": root, "Soil": soil}},
    }


def schema_of(document: Document) -> dict[str, Any]:
    schema: dict[str, Any] = document["components"]["schemas"]["Bed"]
    return schema


@functools.cache
def release() -> dict[GroupVersion, Document]:
    """The documents of 1.35 and, as Go builds them, of the custom resources of the reference data."""
    found: dict[GroupVersion, Document] = {
        GroupVersion(key): load(path) for key, path in documents("1.35").items()
    }
    for path in sorted((GOLDEN / "crd-openapi-v3").rglob("*.json*")):
        document = load(path)
        key = group_version_of(next(iter(document.get("paths") or {}), ""))
        if key is not None:
            found.setdefault(key, document)
    return found


@functools.cache
def release_kinds() -> DocumentSet:
    return DocumentSet(release())


@functools.cache
def release_resources() -> tuple[tuple[GroupVersion, APIResource], ...]:
    """Every resource whose kind a document describes, by document and name."""
    return tuple(
        (key, resource)
        for key, document in sorted(release().items())
        if split(key) is not None
        for resource in synthesise(document, key)
    )


def random_path(schemas: dict[str, Any], schema: dict[str, Any], random: Random) -> list[str]:
    """As somebody might ask for a field: most lead somewhere, some do not."""
    path: list[str] = []
    for _ in range(30):
        reference = schema.get("$ref")
        if reference:
            schema = schemas.get(reference.rpartition("/")[2], {})
        if schema.get("properties"):
            if path and random.random() < 0.15:
                break
            path.append(random.choice(sorted(schema["properties"])))
            schema = schema["properties"][path[-1]]
        elif isinstance(schema.get("items"), dict):
            schema = schema["items"]
        elif isinstance(schema.get("additionalProperties"), dict):
            schema = schema["additionalProperties"]
        elif schema.get("allOf"):
            schema = schema["allOf"][0]
        else:
            break
    if random.random() < 0.1:
        path.insert(random.randrange(len(path) + 1), random.choice(["spec", "items", "nothing", "type"]))
    return path


def kubectl_text(
    document: Document, resource: tuple[str, str, str], path: Sequence[str], **options: Any
) -> str:
    """What kubectl prints for a resource, by group, version and plural: the kind is that of its operations,
    and the last path that states one decides."""
    group, version, plural = resource
    root = f"/apis/{group}/{version}/" if group else f"/api/{version}/"
    kind: Mapping[str, Any] = {}
    for middle in ("", "namespaces/{namespace}/"):
        for end in ("", "/{name}"):
            item = within(document, "paths", f"{root}{middle}{plural}{end}")
            operations = (within(item, method) for method in ("get", "post", "put", "patch", "delete"))
            for operation in filter(None, operations):
                kind = within(operation, "x-kubernetes-group-version-kind")
                if kind:
                    break
    return plaintext(
        document, GroupVersionKind(kind["group"], kind["version"], kind["kind"]), path, **options
    )
