"""Schemas of all documents together: every component by name, and a schema that dispatches by kind.

A component in several documents is taken from its own group-version, else from the first by name that is not
a custom resource's, whose copy may stem from another release.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final

from specmux_converters.errors import ConverterError, cut
from specmux_converters.group_versions import GroupVersion
from specmux_converters.json_schema.document import DocumentSchemas
from specmux_converters.json_schema.forms import DRAFT, Schema, SchemaForm
from specmux_converters.json_schema.kinds import LIST, Kind
from specmux_converters.json_schema.typed import NEVER_NULL
from specmux_converters.order import version_rank

_REFERENCE: Final = "#/definitions/"


def definitions(schemas: Mapping[GroupVersion, DocumentSchemas], form: SchemaForm) -> Schema:
    """``_definitions.json``: each component under its own name."""
    return {"$schema": DRAFT, "definitions": _components(schemas, form)}


def dispatcher(schemas: Mapping[GroupVersion, DocumentSchemas], form: SchemaForm) -> Schema:
    """``all.json``: one schema for every object. Objects that no document describes are accepted."""
    kinds: dict[str, list[Kind]] = {LIST.api_version: [LIST]}
    for each in schemas.values():
        for kind in each.kinds:
            kinds.setdefault(kind.api_version, []).append(kind)
    known = {"anyOf": [{"enum": sorted(kinds)}, {"type": "string"}]}
    return {
        "$schema": DRAFT,
        "title": "Kubernetes",
        "type": "object",
        "required": list(NEVER_NULL),
        "properties": {"apiVersion": {"type": "string", **known}, "kind": {"type": "string"}},
        "allOf": [
            *(_of_version(version, kinds[version]) for version in sorted(kinds)),
            _schema_of_unknown(kinds),
        ],
        "definitions": _components(schemas, form),
    }


def list_schema(items: Schema) -> Schema:
    """``v1 List``."""
    fixed = {"apiVersion": LIST.version, "kind": LIST.kind}
    return {
        "title": f"{LIST.kind} {LIST.version}",
        "type": "object",
        "required": [*NEVER_NULL, "items"],
        "properties": {
            **{name: {"type": "string", "enum": [value]} for name, value in fixed.items()},
            "metadata": {"type": ["object", "null"]},
            "items": {"type": ["array", "null"], "items": items},
        },
        "additionalProperties": False,
    }


def _of_version(api_version: str, kinds: Iterable[Kind]) -> Schema:
    found = {kind.kind: kind for kind in kinds}
    return {
        "if": _says("apiVersion", api_version),
        "then": {
            "properties": {"kind": {"enum": sorted(found)}},
            "allOf": [
                {
                    "if": _says("kind", name),
                    "then": _thin(found[name]),
                }
                for name in sorted(found)
            ],
        },
    }


def _says(name: str, value: str) -> Schema:
    """Whether a property has the value. While it completes, yaml-language-server takes the beginning of an
    ``enum``'s value for the value: in a Certificate it would offer the fields of a CertificateRequest."""
    exact = {"type": "string", "pattern": f"^{value.replace('.', '[.]')}$"}
    return {"required": [name], "properties": {name: exact}}


def _schema_of_unknown(kinds: Mapping[str, Iterable[Kind]]) -> Schema:
    """An object of an apiVersion without a kind here passes. Editors show a ``deprecationMessage``,
    which says where the kind is; validators read over it."""
    homes: dict[str, list[str]] = {}
    for version in sorted(kinds, key=_home_rank):
        for kind in kinds[version]:
            homes.setdefault(kind.kind, []).append(version)
    nowhere = "no kind of these schemas has this apiVersion"
    at_home = [
        {
            "if": _says("kind", name),
            "then": _deprecation_warning(f"{nowhere}; {name} is in {', '.join(homes[name])}"),
        }
        for name in sorted(homes)
    ]
    is_other = {"type": "string", "not": {"enum": sorted(kinds)}}
    return {
        "if": {"required": ["apiVersion"], "properties": {"apiVersion": is_other}},
        "then": {
            "if": {"required": ["kind"], "properties": {"kind": {"enum": sorted(homes)}}},
            "then": {"allOf": at_home},
            "else": _deprecation_warning(nowhere),
        },
    }


def _home_rank(api_version: str) -> tuple[Any, ...]:
    group, _, version = api_version.rpartition("/")
    return group, version_rank(version)


def _deprecation_warning(text: str) -> Schema:
    return {"properties": {"apiVersion": {"deprecationMessage": text}}}


def _thin(kind: Kind) -> Schema:
    if kind == LIST:
        return list_schema({"$ref": "#"})
    return {
        "title": f"{kind.kind} {kind.api_version}",
        "allOf": [{"$ref": _REFERENCE + kind.component}],
    }


def _components(schemas: Mapping[GroupVersion, DocumentSchemas], form: SchemaForm) -> dict[str, Any]:
    named = replace(form, is_named=True)
    found: dict[str, Any] = {}
    for name, owner in sorted(_owners(schemas).items()):
        try:
            found[name] = owner.definition(name, named)
        except ConverterError as error:  # affects only this component
            found[name] = {"$comment": f"cannot be converted, so that anything passes: {cut(str(error))}"}
    for each in schemas.values():
        for name, schema in each.shared_definitions(named).items():
            found.setdefault(name, schema)
    return found


def _owners(schemas: Mapping[GroupVersion, DocumentSchemas]) -> dict[str, DocumentSchemas]:
    found: dict[str, tuple[int, DocumentSchemas]] = {}
    for key in sorted(schemas):
        each = schemas[key]
        own = {kind.component for kind in each.kinds}
        for name, schema in each.schemas.items():
            rank = 0 if name in own else 2 if each.has_custom_resources else 1
            if isinstance(schema, dict) and (name not in found or rank < found[name][0]):
                found[name] = rank, each
    return {name: owner for name, (_, owner) in found.items()}
