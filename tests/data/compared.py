"""Sides to compare, as tests write them: manifests of one definition, documents of one resource."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from typing import Any

from specmux_tools.differences import Basis, Comparison, ServedSide, add_document, add_manifests, compare


def definition(schema: dict[str, Any], **version: Any) -> dict[str, Any]:
    """The manifest of widgets.example.com whose ``spec`` has the schema."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"kind": "Widget", "plural": "widgets"},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}},
                    **version,
                }
            ],
        },
    }


def document(
    schema: dict[str, Any], components: dict[str, Any] | None = None, *, version: str = "v1"
) -> dict[str, Any]:
    """A document of widgets, written and read by name, whose ``spec`` has the schema."""
    kind = {"group": "example.com", "version": version, "kind": "Widget"}
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Widget"}}}}
    answer = {"responses": {"200": {"description": "OK", **body}}, "x-kubernetes-group-version-kind": kind}
    widget = {
        "type": "object",
        "properties": {"spec": schema},
        "x-kubernetes-group-version-kind": [kind],
    }
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "unversioned"},
        "paths": {
            f"/apis/example.com/{version}/widgets/{{name}}": {
                "get": {**answer, "operationId": "read"},
                "put": {**answer, "operationId": "replace", "requestBody": body},
            }
        },
        "components": {"schemas": {"Widget": widget, **(components or {})}},
    }


def of_documents(documents: Iterable[dict[str, Any]]) -> ServedSide:
    served = ServedSide()
    for item in documents:
        add_document(served, item)
    return served


def of_manifests(manifests: Iterable[dict[str, Any]]) -> ServedSide:
    served = ServedSide()
    add_manifests(served, manifests)
    return served


def compared_documents(old: dict[str, Any], new: dict[str, Any], basis: Basis | None = None) -> Comparison:
    """Neither document is written into; a test that sees one change fails here."""
    before = copy.deepcopy((old, new))
    found = compare(of_documents([old]), of_documents([new]), basis=basis)
    assert (old, new) == before
    return found


def compared_specs(old: dict[str, Any], new: dict[str, Any]) -> Comparison:
    """Of a definition whose ``spec`` had one schema and has another."""
    return compare(of_manifests([definition(old)]), of_manifests([definition(new)]))


def told(comparison: Comparison) -> list[tuple[str, str, str]]:
    """Id, path and severity of each place, sorted."""
    return sorted((place.id, place.path, place.severity.word) for place in comparison.places)


def ids(comparison: Comparison) -> set[str]:
    return {place.id for place in comparison.places}


def inlined(schema: Any, components: dict[str, Any]) -> Any:
    """The schema with every reference written out; there must be no ring."""
    if isinstance(schema, dict):
        reference = schema.get("$ref")
        if isinstance(reference, str):
            return inlined(components[reference.rpartition("/")[2]], components)
        return {key: inlined(value, components) for key, value in schema.items()}
    return [inlined(item, components) for item in schema] if isinstance(schema, list) else schema


def reversed_members(value: Any) -> Any:
    """Every object's members the other way round."""
    if isinstance(value, dict):
        return {key: reversed_members(value[key]) for key in reversed(value)}
    return [reversed_members(item) for item in value] if isinstance(value, list) else value


def paths_of(comparison: Comparison, change: str) -> Iterator[str]:
    return (place.path for place in comparison.places if place.id == change)
