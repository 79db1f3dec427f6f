"""Documents in the shape of the reference data, for benchmarks on machines that do not have it.

They are like Kubernetes': one Swagger 2.0 document of many group-versions with shared components, v3
documents by release, CustomResourceDefinitions. Figures measured on them are not those of docs/benchmarks/.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import orjson
import yaml

from specmux_converters import convert

Value = dict[str, Any]

GROUPS: Final = {"": ("v1",), "apps": ("v1",), "batch": ("v1",), "policy": ("v1",)} | {
    f"group{number}.example.com": ("v1", "v1beta1") for number in range(16)
}
KINDS: Final = ("Pod", "Deployment", "Job", "Budget", "Node", "Service", "Secret", "Claim", "Role", "Quota")
FIELDS: Final = 10
"""Fields of a specification, each with a description of some lines, as Kubernetes has them."""
RELEASES: Final = ("1.29", "1.30", "1.32", "1.35")
DEFINITIONS: Final = 97
META: Final = "io.k8s.apimachinery.pkg.apis.meta.v1"
TEXT: Final = (
    "is what a controller reads to decide how objects of this kind are created, replaced and removed. "
    "It is optional; without it the default of the cluster is taken, which administrators may change. "
)


def write_documents(folder: Path) -> str:
    """All of them below ``folder``; what they are, in words."""
    sizes = {release: _write_release(folder, release) for release in RELEASES}
    core = orjson.dumps(swagger({"": ("v1",)}, fields=22 * FIELDS))
    _write(folder / "data/kube-openapi-vectors/openapiconv/v2_api.v1.json.gz", gzip.compress(core, 1))
    for number in range(DEFINITIONS):
        text = yaml.safe_dump(definition(number))
        _write(folder / "data/crds/made" / f"crd{number}.yaml", text.encode())
    objects = [orjson.dumps({"accept": True, "object": made_object(*each)}) for each in _served_kinds()]
    _write(folder / "golden/json-schema/verdicts-typed.jsonl.gz", gzip.compress(b"\n".join(objects), 1))
    return (
        f"made documents: {len(RELEASES)} releases, Swagger 2.0 of {sizes['1.35'] / 1e6:.2f} MB in "
        f"{sum(map(len, GROUPS.values()))} group-versions, its core of {len(core) / 1e6:.2f} MB, "
        f"{DEFINITIONS} CustomResourceDefinitions"
    )


def swagger(groups: Mapping[str, tuple[str, ...]], *, fields: int = FIELDS) -> Value:
    """A Swagger 2.0 document as an apiserver publishes it."""
    document: Value = {
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "made"},
        "paths": {},
        "definitions": {
            f"{META}.ObjectMeta": {
                **_object({"name": _string("name"), "labels": _map()}),
                "description": "ObjectMeta is what every persisted object has.",
            },
            f"{META}.Status": _object({"code": {"type": "integer", "format": "int32"}}),
            f"{META}.DeleteOptions": _object({"gracePeriodSeconds": {"type": "integer", "format": "int64"}}),
        },
    }
    for group, versions in groups.items():
        for version in versions:
            for kind in KINDS:
                document["definitions"].update(_definitions(group, version, kind, fields))
                document["paths"].update(_paths(group, version, kind))
    return document


def definition(number: int) -> Value:
    """A CustomResourceDefinition with a schema of some depth."""
    kind = f"Widget{number}"
    level: Value = {
        "type": "object",
        "properties": {f"field{each}": _string(f"field{each}") for each in range(FIELDS)},
    }
    for depth in range(3):
        level = {
            "type": "object",
            "properties": {f"level{depth}": level, "items": {"type": "array", "items": level}},
        }
    schema = {"type": "object", "properties": {"spec": level, "status": {"type": "object"}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.lower()}s.group{number % 20}.example.org"},
        "spec": {
            "group": f"group{number % 20}.example.org",
            "scope": "Namespaced",
            "names": {"plural": f"{kind.lower()}s", "kind": kind},
            "versions": [
                {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
            ],
        },
    }


def made_object(group: str, version: str, kind: str) -> Value:
    """An object that the made documents take."""
    spec: Value = {f"field{number}": f"a value of field {number}" for number in range(FIELDS)}
    return {
        "apiVersion": f"{group}/{version}" if group else version,
        "kind": kind,
        "metadata": {"name": "made", "labels": {f"label-{number}": "web" for number in range(8)}},
        "spec": {**spec, "template": {f"part{number}": f"part {number} " * 20 for number in range(6)}},
    }


def _served_kinds() -> Iterator[tuple[str, str, str]]:
    for group, versions in GROUPS.items():
        for version in versions:
            for kind in KINDS:
                yield group, version, kind


def _write_release(folder: Path, release: str) -> int:
    """Bytes of its Swagger 2.0. Each release has a field that the one before has not."""
    document = swagger(GROUPS, fields=FIELDS + RELEASES.index(release))
    text = orjson.dumps(document)
    _write(folder / f"data/k8s-pairs/{release}/v2/swagger.json.gz", gzip.compress(text, 1))
    conversion = convert(document)
    for key in conversion.documents:
        if key.startswith("api"):
            path = folder / f"data/k8s-pairs/{release}/v3/{key}.json.gz"
            _write(path, gzip.compress(conversion.json(key), 1))
    return len(text)


def _definitions(group: str, version: str, kind: str, fields: int) -> Iterator[tuple[str, Value]]:
    name = f"io.k8s.api.{group or 'core'}.{version}.{kind}"
    named = {"group": group, "version": version, "kind": kind}
    spec = {f"field{number}": _string(f"field{number} {TEXT}{number}") for number in range(fields)}
    spec["template"] = {"$ref": f"#/definitions/{name}Part"}
    properties = {
        "apiVersion": _string("version"),
        "kind": _string("kind"),
        "metadata": {"$ref": f"#/definitions/{META}.ObjectMeta"},
        "spec": {"$ref": f"#/definitions/{name}Spec"},
    }
    listed = {"metadata": _map(), "items": {"type": "array", "items": {"$ref": f"#/definitions/{name}"}}}
    yield name, {**_object(properties), "x-kubernetes-group-version-kind": [named]}
    yield f"{name}Spec", _object(spec)
    yield f"{name}Part", _object({f"part{number}": _string(TEXT) for number in range(6)})
    yield (
        f"{name}List",
        {**_object(listed), "x-kubernetes-group-version-kind": [{**named, "kind": f"{kind}List"}]},
    )


def _paths(group: str, version: str, kind: str) -> Iterator[tuple[str, Value]]:
    root = f"/apis/{group}/{version}" if group else f"/api/{version}"
    collection = f"{root}/namespaces/{{namespace}}/{kind.lower()}s"
    name = f"io.k8s.api.{group or 'core'}.{version}.{kind}"
    one, many = f"#/definitions/{name}", f"#/definitions/{name}List"
    operations = {
        collection: (("get", "list", many), ("post", "post", one), ("delete", "deletecollection", many)),
        f"{collection}/{{name}}": (
            ("get", "get", one), ("put", "put", one), ("patch", "patch", one), ("delete", "delete", one),
        ),
    }  # fmt: skip
    for path, listed in operations.items():
        item: Value = {
            method: {
                "operationId": f"{action}{group.title().replace('.', '')}{version.title()}Namespaced{kind}",
                "description": f"{action} {kind}",
                "produces": ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"],
                "parameters": [
                    {"name": "fieldValidation", "in": "query", "type": "string", "description": TEXT}
                ],
                "responses": {
                    "200": {"description": "OK", "schema": {"$ref": answer}},
                    "401": {"description": "No"},
                },
                "x-kubernetes-action": action,
                "x-kubernetes-group-version-kind": {"group": group, "version": version, "kind": kind},
            }
            for method, action, answer in listed
        }
        names = [part for part in ("namespace", "name") if f"{{{part}}}" in path]
        item["parameters"] = [
            {"name": each, "in": "path", "required": True, "type": "string"} for each in names
        ]
        yield path, item


def _object(properties: Value) -> Value:
    return {"type": "object", "description": TEXT, "properties": properties}


def _string(description: str) -> Value:
    return {"type": "string", "description": description}


def _map() -> Value:
    return {"type": "object", "additionalProperties": {"type": "string"}, "description": TEXT}


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
