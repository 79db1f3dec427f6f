"""Reads CustomResourceDefinitions: the group-versions they are served in.

Every served version is both read and written. ``apiVersion``, ``kind`` and ``metadata`` exist whether a
schema lists them or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from specmux_converters.crd.manifest import CRD, Problem, Version, read_manifest
from specmux_converters.document import Document
from specmux_converters.json_values import mapping, objects, texts
from specmux_tools.differences.schema.keywords import PRESERVES
from specmux_tools.differences.schema.views import ComponentSchemas
from specmux_tools.differences.served import (
    Basis,
    ServedKind,
    ServedResource,
    ServedSide,
    StoredVersions,
)

_STRING: Final = {"type": "string"}
_METADATA: Final = ("name", "generateName")
"""The fields of ``metadata`` that a definition may constrain."""


def add_manifests(served: ServedSide, manifests: Iterable[Document]) -> tuple[Problem, ...]:
    """Reports and skips unreadable parts. Raises InvalidDocument for what is no definition."""
    problems: list[Problem] = []
    for manifest in manifests:
        crd = read_manifest(manifest, problems)
        spec = mapping(manifest.get("spec"))
        listed = objects(spec.get("versions")) or [{"name": spec.get("version")}]
        said = {each["name"]: each for each in listed if isinstance(each.get("name"), str)}
        for version in crd.versions:
            _add_version(served, crd, version, said.get(version.name, {}), spec)
        served.stored_versions[crd.group, crd.plural] = StoredVersions(
            crd.kind,
            # A manifest in a repository has no status, and so none.
            frozenset(texts(mapping(manifest.get("status")).get("storedVersions"))),
            frozenset(said),
            len(listed) > 1 and mapping(spec.get("conversion")).get("strategy") == "Webhook",
        )
    return tuple(problems)


def root_schema(kind: ServedKind, *, is_bare: bool) -> Any:
    """The kind's schema for the comparison.

    ``is_bare``: one of the two sides is a definition, so ``metadata`` is reduced to what a definition may
    constrain.
    """
    if not is_bare:
        return kind.schema
    schema = dict(kind.schemas.view(kind.schema).keywords)
    fields = dict(mapping(schema.get("properties")))
    names = mapping(kind.schemas.view(fields.get("metadata")).keywords.get("properties"))
    fields["apiVersion"] = fields["kind"] = _STRING
    fields["metadata"] = {
        "type": "object",
        "properties": {name: {**_STRING, **mapping(names.get(name))} for name in _METADATA},
    }
    schema["properties"] = fields
    required = schema.get("required")
    if isinstance(required, list):
        schema["required"] = [name for name in required if name not in ("apiVersion", "kind", "metadata")]
    return schema


def _add_version(
    served: ServedSide, crd: CRD, version: Version, said: Mapping[str, Any], spec: Mapping[str, Any]
) -> None:
    """``said``: the version as the manifest's ``spec`` has it."""
    scale = mapping(mapping(said.get("subresources") or spec.get("subresources")).get("scale"))
    group_version = served.group_version(crd.group_version(version), Basis.ENFORCED)
    flags = ("status", version.has_status), ("scale", version.has_scale)
    subresources = [name for name, is_there in flags if is_there]
    group_version.resources[crd.plural] = ServedResource(
        crd.plural,
        crd.kind,
        crd.is_namespaced,
        subresources={name: {} for name in subresources},
        is_deprecated=said.get("deprecated") is True,
        scale_paths={key: path for key, path in scale.items() if isinstance(path, str)},
        is_manifest=True,
    )
    schema = {"type": "object", **mapping(version.schema)}
    if spec.get("preserveUnknownFields") is True:  # nothing is pruned
        schema[PRESERVES] = True
    if version.selectable_fields:
        schema["x-kubernetes-selectable-fields"] = [{"fieldPath": path} for path in version.selectable_fields]
    group_version.kinds[crd.kind, crd.group] = ServedKind(
        crd.kind,
        schema,
        ComponentSchemas({}),
        is_written=True,
        is_read=True,
        is_read_by_name=True,
        is_manifest=True,
    )
