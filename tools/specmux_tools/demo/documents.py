"""The documents of the demonstration's backends, written for it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from specmux_converters.document import Document


@dataclass(frozen=True, slots=True)
class DemoResource:
    """A namespaced resource with a spec of plain string properties."""

    group: str
    version: str
    kind: str
    plural: str
    description: str
    properties: tuple[tuple[str, str], ...]
    """Name and description."""

    @property
    def group_version(self) -> str:
        return f"apis/{self.group}/{self.version}"

    @property
    def component(self) -> str:
        return ".".join([*reversed(self.group.split(".")), self.version, self.kind])

    @property
    def gvk(self) -> dict[str, str]:
        return {"group": self.group, "kind": self.kind, "version": self.version}


PLANTS = DemoResource(
    "garden.example.org",
    "v1",
    "Plant",
    "plants",
    "Plant is something that grows in a bed.",
    (("species", "Botanical name."), ("bed", "The bed it stands in."), ("water", "How often to water it.")),
)
SEEDS = DemoResource(
    "garden.example.org",
    "v1alpha1",
    "Seed",
    "seeds",
    "Seed is a plant to be.",
    (("species", "Botanical name."), ("sowAfter", "Day of the year after which it may be sown.")),
)
BOOKS = DemoResource(
    "library.example.org",
    "v1",
    "Book",
    "books",
    "Book can be borrowed.",
    (("title", "As printed on the spine."), ("shelf", "Where it stands.")),
)
TREES = DemoResource(
    "orchard.example.org",
    "v1",
    "Tree",
    "trees",
    "Tree bears fruit, and is defined by a CustomResourceDefinition.",
    (("variety", "Fruit that is picked from it."), ("row", "The row it stands in.")),
)
STATIONS = DemoResource(
    "weather.example.org",
    "v1",
    "Station",
    "stations",
    "Station measures the weather.",
    (("location", "Where it stands."), ("elevation", "Metres above the sea, as text.")),
)


def openapi_v3(resource: DemoResource) -> Document:
    """The group-version document of one resource, as an apiserver with OpenAPI v3 publishes it."""
    reference = {"$ref": f"#/components/schemas/{resource.component}"}
    content = {"application/json": {"schema": reference}}
    return {
        "openapi": "3.0.0",
        "info": {"title": "specmux demo", "version": "1"},
        "paths": {
            path: {
                "parameters": [
                    {
                        "name": name,
                        "in": "path",
                        "required": True,
                        "schema": {"type": "string", "uniqueItems": True},
                    }
                    for name in parameters
                ],
                "get": _operation(resource, action, {"200": {"description": "OK", "content": content}}),
            }
            for path, action, parameters in _paths(resource)
        },
        "components": {"schemas": {resource.component: _schema(resource)}},
    }


def swagger_2(*resources: DemoResource) -> Document:
    """One Swagger 2.0 document of several resources, as an apiserver without OpenAPI v3 publishes it."""
    return {
        "swagger": "2.0",
        "info": {"title": "specmux demo", "version": "1"},
        "paths": {
            path: {
                "parameters": [
                    {"name": name, "in": "path", "required": True, "type": "string", "uniqueItems": True}
                    for name in parameters
                ],
                "get": _operation(
                    resource,
                    action,
                    {
                        "200": {
                            "description": "OK",
                            "schema": {"$ref": f"#/definitions/{resource.component}"},
                        }
                    },
                )
                | {"produces": ["application/json"]},
            }
            for resource in resources
            for path, action, parameters in _paths(resource)
        },
        "definitions": {resource.component: _schema(resource) for resource in resources},
    }


def definition(resource: DemoResource) -> Document:
    """The manifest of a CustomResourceDefinition, as somebody would apply it to an apiserver."""
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}"},
        "spec": {
            "group": resource.group,
            "scope": "Namespaced",
            "names": {
                "plural": resource.plural,
                "singular": resource.kind.lower(),
                "kind": resource.kind,
                "shortNames": [resource.plural[:2]],
            },
            "versions": [
                {
                    "name": resource.version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": _structure(resource)},
                }
            ],
        },
    }


def _paths(resource: DemoResource) -> list[tuple[str, str, tuple[str, ...]]]:
    namespaced = f"/{resource.group_version}/namespaces/{{namespace}}/{resource.plural}"
    return [
        (namespaced, "list", ("namespace",)),
        (f"{namespaced}/{{name}}", "get", ("name", "namespace")),
    ]


def _operation(resource: DemoResource, action: str, responses: dict[str, Any]) -> dict[str, Any]:
    return {
        "description": f"{action} {resource.plural}",
        "operationId": f"{action}{resource.version.title()}{resource.kind}",
        "responses": responses,
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": resource.gvk,
    }


def _schema(resource: DemoResource) -> dict[str, Any]:
    return {**_structure(resource), "x-kubernetes-group-version-kind": [resource.gvk]}


def _structure(resource: DemoResource) -> dict[str, Any]:
    text = {"type": "string"}
    return {
        "description": resource.description,
        "type": "object",
        "properties": {
            "apiVersion": text,
            "kind": text,
            "metadata": {"type": "object"},
            "spec": {
                "type": "object",
                "properties": {
                    name: {"description": description, "type": "string"}
                    for name, description in resource.properties
                },
            },
        },
    }
