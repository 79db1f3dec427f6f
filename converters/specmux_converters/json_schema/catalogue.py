"""A catalogue of JSON Schemas: the file at each path, made from documents.

Performs no I/O: the caller asks which documents a path needs, and passes them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson

from specmux_converters.group_versions import GroupVersion
from specmux_converters.json_schema.definitions import definitions, dispatcher, list_schema
from specmux_converters.json_schema.document import DocumentSchemas
from specmux_converters.json_schema.forms import DRAFT, EDITION, Schema, SchemaForm
from specmux_converters.json_schema.kinds import LIST, Kind
from specmux_converters.json_schema.models import models
from specmux_converters.json_schema.paths import (
    ModelsFile,
    OneFile,
    Wanted,
    component_stem,
    grouped_path,
    standalone_path,
)

CORE: Final = GroupVersion("api/v1")
_STORE: Final = "https://json.schemastore.org/schema-catalog.json"


def schema_of(file: Wanted, schemas: Mapping[GroupVersion, DocumentSchemas]) -> Schema | None:
    """None if the documents have no such kind or component. Raises ConverterError for what cannot be
    converted."""
    if isinstance(file, OneFile):
        return _one(file, schemas)
    if isinstance(file, ModelsFile):
        found = file.documents(schemas)
        return models(schemas[found[0]].document, found[0], file.form) if found else None
    if file.what == "all":
        return dispatcher(schemas, file.form)
    return definitions(schemas, file.form)


def text_of(schema: Any) -> bytes:
    return orjson.dumps(schema) + b"\n"


def index(schemas: Mapping[GroupVersion, DocumentSchemas], *, absent: Iterable[str] = ()) -> Schema:
    """``index.json``: every kind and its files. ``absent``: backends whose kinds are missing."""
    return {
        "edition": EDITION,
        "kinds": [
            {
                "group": kind.group,
                "version": kind.version,
                "kind": kind.kind,
                "path": grouped_path(kind),
                "bundle": f"bundle/{grouped_path(kind)}",
                "partial": f"partial/{grouped_path(kind)}",
                "standalone": standalone_path(kind, SchemaForm()),
            }
            for kind in all_kinds(schemas)
        ],
        "absent": sorted(absent),
    }


def store_catalog(schemas: Mapping[GroupVersion, DocumentSchemas], base: str) -> Schema:
    """``catalog.json`` in SchemaStore's format. ``base``: the catalogue's address, "" if unknown."""
    prefix = f"{base.rstrip('/')}/" if base else ""
    entries = [("Kubernetes", "Any object of this cluster", "all.json")]
    entries += [
        (f"{kind.kind} {kind.api_version}", f"Kubernetes {kind.kind}", grouped_path(kind))
        for kind in all_kinds(schemas)
    ]
    return {
        "$schema": _STORE,
        "version": 1,
        "schemas": [
            {"name": name, "description": about, "url": f"{prefix}{path}"} for name, about, path in entries
        ],
    }


def all_kinds(schemas: Mapping[GroupVersion, DocumentSchemas]) -> list[Kind]:
    """Sorted; includes ``v1 List``."""
    return sorted({LIST, *(kind for each in schemas.values() for kind in each.kinds)})


def _one(file: OneFile, schemas: Mapping[GroupVersion, DocumentSchemas]) -> Schema | None:
    found = [
        schemas[key].kind(kind, file.form)
        for key in file.documents(schemas)
        for kind in schemas[key].kinds
        if kind.kind.lower() == file.name
    ]
    if not found and (file.name, file.group or file.label, file.version) == ("list", "", LIST.version):
        return {"$schema": DRAFT, **list_schema({"type": "object"})}
    if found:
        return found[0] if len(found) == 1 else _either(found)
    return _component(file, schemas) if file.group is None else None


def _either(schemas: list[Schema]) -> Schema:
    """Kinds whose groups start alike; ``apiVersion`` distinguishes them."""
    shared: dict[str, Any] = {}
    for schema in schemas:
        shared |= schema.get("definitions", {})
    whole: Schema = {
        "$schema": DRAFT,
        "anyOf": [
            {key: value for key, value in schema.items() if key not in ("$schema", "definitions")}
            for schema in schemas
        ],
    }
    return whole | ({"definitions": shared} if shared else {})


def _component(file: OneFile, schemas: Mapping[GroupVersion, DocumentSchemas]) -> Schema | None:
    stem = "-".join(filter(None, (file.name, file.label, file.version)))
    for key in sorted(schemas, key=lambda key: (key != CORE, key)):
        for name, schema in sorted(schemas[key].schemas.items()):
            if component_stem(name) == stem and isinstance(schema, dict):
                return schemas[key].component(name, file.form)
    return None
