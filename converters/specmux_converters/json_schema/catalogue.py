"""A catalogue of JSON Schemas: the file at each path, made from documents, and all files in sequence.

Performs no I/O: the caller asks which documents a path needs, and passes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final

import orjson

from specmux_converters.errors import ConverterError
from specmux_converters.group_versions import GroupVersion
from specmux_converters.json_schema.crds import crds_yaml
from specmux_converters.json_schema.definitions import definitions, dispatcher, list_schema
from specmux_converters.json_schema.document import DocumentSchemas
from specmux_converters.json_schema.forms import DRAFT, EDITION, MODEL_FORMS, Schema, SchemaForm
from specmux_converters.json_schema.kinds import LIST, Kind
from specmux_converters.json_schema.models import models
from specmux_converters.json_schema.paths import (
    MASTER,
    ModelsFile,
    OneFile,
    Wanted,
    component_stem,
    documents_needed,
    file_wanted_at,
    grouped_path,
    models_path,
    paths_of,
    standalone_path,
)
from specmux_converters.json_values import array

CORE: Final = GroupVersion("api/v1")
_STORE: Final = "https://json.schemastore.org/schema-catalog.json"

MODELS: Final = ("models", "partial-models")
"""Layouts by group-version rather than by kind."""
LAYOUTS: Final = ("grouped", "standalone", "bundle", "partial", *MODELS)
_WHOLE: Final = ("all.json", "_definitions.json")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*")


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


def layout_of(path: str) -> str:
    """The layout of a path of a kind or of a group-version."""
    folder = path.partition("/")[0]
    if folder in ("bundle", "partial", *MODELS):
        return folder
    return "standalone" if "-standalone" in folder else "grouped"


def files(
    schemas: Mapping[GroupVersion, DocumentSchemas],
    *,
    layouts: Iterable[str],
    report: Callable[[Kind, ConverterError], None],
    release: str = MASTER,
    kinds: Iterable[str] = (),
    base: str = "",
) -> Iterator[tuple[str, bytes]]:
    """``kinds``: patterns of ``Deployment`` or ``deployment.apps``; without any, all kinds, with ``all.json``
    and ``_definitions.json``. A kind that cannot be converted is reported and has no file."""
    patterns, chosen = tuple(kinds), tuple(layouts)
    held = _select_schemas(schemas, patterns)
    written: set[str] = set()
    for kind in all_kinds(held):
        if not is_chosen(kind, patterns):
            continue
        made: dict[object, bytes | None] = {}
        for path in (path for path, _ in paths_of(kind, release) if layout_of(path) in chosen):
            file = file_wanted_at(path)
            if file is None or path in written:
                continue
            written.add(path)
            key = file.form, documents_needed(file, held)
            if key not in made:
                made[key] = _text(file, kind, held, report)
            text = made[key]
            if text is not None:
                yield path, text
    yield from _models(held, chosen, lambda kind: is_chosen(kind, patterns), report)
    if set(chosen) <= set(MODELS):  # generators need nothing else
        yield "index.json", text_of(index(held))
        return
    if not patterns:
        yield from _whole(held)
        definitions = crds_yaml(held)
        if definitions:
            yield "crds.yaml", definitions
    yield "index.json", text_of(index(held))
    yield "catalog.json", text_of(store_catalog(held, base))


def is_chosen(kind: Kind, patterns: tuple[str, ...]) -> bool:
    names = (kind.kind.lower(), f"{kind.kind}.{kind.group}".lower())
    return not patterns or any(fnmatchcase(name, each.lower()) for name in names for each in patterns)


def _select_schemas(
    schemas: Mapping[GroupVersion, DocumentSchemas], patterns: tuple[str, ...]
) -> Mapping[GroupVersion, DocumentSchemas]:
    return {
        key: each
        for key, each in schemas.items()
        if not patterns or any(is_chosen(kind, patterns) for kind in each.kinds)
    }


def _whole(schemas: Mapping[GroupVersion, DocumentSchemas]) -> Iterator[tuple[str, bytes]]:
    for path in _WHOLE:
        file = file_wanted_at(path)
        schema = schema_of(file, schemas) if file else None
        if schema is not None:
            yield path, text_of(schema)


def _text(
    file: Wanted,
    kind: Kind,
    schemas: Mapping[GroupVersion, DocumentSchemas],
    report: Callable[[Kind, ConverterError], None],
) -> bytes | None:
    try:
        schema = schema_of(file, schemas)
    except ConverterError as error:
        report(kind, error)
        return None
    return None if schema is None else text_of(schema)


def _models(
    schemas: Mapping[GroupVersion, DocumentSchemas],
    layouts: tuple[str, ...],
    is_chosen: Callable[[Kind], bool],
    report: Callable[[Kind, ConverterError], None],
) -> Iterator[tuple[str, bytes]]:
    for key, each in sorted(schemas.items()):
        for form in MODEL_FORMS if each.kinds else ():
            path = models_path(each.kinds[0], form)
            if layout_of(path) not in layouts:
                continue
            try:
                bundle = models(each.document, key, form, is_chosen)
            except ConverterError as error:
                for kind in filter(is_chosen, each.kinds):
                    report(kind, error)
                break
            if bundle is not None:
                yield path, text_of(bundle)


def gone(before: Schema, after: Schema, *, release: str) -> Iterator[str]:
    """Paths of kinds that an earlier ``index.json`` lists and a later one does not."""
    kept = {path for kind in _kinds_in(after) for path, _ in paths_of(kind, release)}
    for kind in sorted(set(_kinds_in(before)) - set(_kinds_in(after)) - {LIST}):
        yield from (path for path, _ in paths_of(kind, release) if path not in kept)
    old, new = (
        {models_path(kind, form) for kind in _kinds_in(each) if kind != LIST for form in MODEL_FORMS}
        for each in (before, after)
    )
    yield from sorted(old - new)


def _kinds_in(listed: Schema) -> Iterator[Kind]:
    """Names that lead out of the folder are ignored: the file is untrusted."""
    for entry in array(listed.get("kinds")):
        match entry:
            case {"group": str(group), "version": str(version), "kind": str(kind)} if all(
                map(_NAME.fullmatch, (group or "core", version, kind))
            ):
                yield Kind(group, version, kind, "")
