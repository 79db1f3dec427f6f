"""Places of changes in files: the line of the new side that says it now, or of the old side that said it.

Found for the reports that show them. A file that is packed, or larger than TEXT_MAX, has no lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import orjson

from specmux_converters.crd.manifest import shown_name
from specmux_converters.document import Document
from specmux_converters.errors import ConverterError
from specmux_converters.go.yaml_dialects import KUBERNETES
from specmux_converters.go.yaml_reader import Duplicates, YamlDocument, read_all
from specmux_converters.group_versions import join_group_version
from specmux_converters.json_values import array, mapping, members, within
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.losses import pointer_to
from specmux_converters.references import name_in, schemas_of
from specmux_tools.differences.changes import Change
from specmux_tools.differences.reports import Report
from specmux_tools.inputs.diff_sides import SourceDocument
from specmux_tools.kinds import group_version_kinds
from specmux_tools.reports import Where
from specmux_tools.validation.decoding.positions import Places

TEXT_MAX: Final = 8 * 1024 * 1024

Path = tuple[str | int, ...]

_STEP: Final = re.compile(r"""\.?([^\s.\[\]{}"\\]+)|\[("(?:[^"\\]|\\.)*")\]|(\[\])|(\{\})""")
_OPERATION: Final = re.compile(r"(GET|PUT|POST|DELETE|OPTIONS|HEAD|PATCH|TRACE) (/.*)")
_KEYWORDS: Final = (
    ("enum-", "enum"),
    ("default-", "default"),
    ("nullable-", "nullable"),
    ("rule-", "x-kubernetes-validations"),
    ("transition-rule-", "x-kubernetes-validations"),
    ("field-became-immutable", "x-kubernetes-validations"),
    ("field-became-mutable", "x-kubernetes-validations"),
    ("type-", "type"),
    ("format-", "format"),
    ("list-type-", "x-kubernetes-list-type"),
    ("list-map-keys-", "x-kubernetes-list-map-keys"),
    ("map-type-", "x-kubernetes-map-type"),
    ("patch-strategy-", "x-kubernetes-patch-strategy"),
    ("unknown-fields-", "x-kubernetes-preserve-unknown-fields"),
    ("embedded-resource-", "x-kubernetes-embedded-resource"),
)
_OF_MANIFEST: Final[Mapping[str, Path]] = {
    "scope-changed": ("spec", "scope"),
    "kind-changed": ("spec", "names", "kind"),
}


@dataclass(frozen=True, slots=True)
class _Spot:
    """The part of a document to which the path of a change leads."""

    source: SourceDocument
    path: Path
    is_whole: bool


def place_changes(report: Report, old: tuple[SourceDocument, ...], new: tuple[SourceDocument, ...]) -> Report:
    """The report with the place of every change that one can be found for."""
    spots = []
    for change in report.changes:
        sides = [_spot(change, new), _spot(change, old)]
        whole = [spot for spot in sides if spot is not None and spot.is_whole]
        spots.append(next(iter([*whole, *filter(None, sides)]), None))
    texts: dict[int, tuple[SourceDocument, set[Path]]] = {}
    for spot in filter(None, spots):
        texts.setdefault(id(spot.source), (spot.source, set()))[1].add(spot.path)
    found = {key: _positions(source, paths) for key, (source, paths) in texts.items()}
    placed = []
    for change, place in zip(report.changes, spots, strict=True):
        if place is not None:
            line, column = found[id(place.source)].get(place.path) or (None, None)
            where = Where(place.source.file, line, column, pointer_to(*place.path))
            change = replace(change, where=where)
        placed.append(change)
    return replace(report, changes=tuple(placed))


def _spot(change: Change, sources: tuple[SourceDocument, ...]) -> _Spot | None:
    spots = [spot for source in sources if (spot := _spot_in(change, source)) is not None]
    return max(spots, key=lambda spot: (spot.is_whole, len(spot.path)), default=None)


def _spot_in(change: Change, source: SourceDocument) -> _Spot | None:
    if source.is_manifest:
        return _in_manifest(change, source)
    operation = _OPERATION.fullmatch(str(change.what)) or _OPERATION.fullmatch(change.location.kind)
    paths = source.document.get("paths")
    if operation and isinstance(paths, dict) and operation[2] in paths:
        is_there = operation[1].lower() in paths[operation[2]]
        path: Path = ("paths", operation[2], *([operation[1].lower()] if is_there else []))
        return _Spot(source, path, is_whole=is_there)
    group = change.location.group_version
    for name, schema in _kinds(source.document, group, change.location.kind):
        return _in_schema(change, source, ("components", "schemas", name), schema)
    prefix = f"/{group}/"
    if group and isinstance(paths, dict) and any(str(path).startswith(prefix) for path in paths):
        return _Spot(source, ("paths",), is_whole=not change.location.kind)
    return None


def _kinds(document: Document, group_version: str, kind: str) -> Iterator[tuple[str, Any]]:
    for name, schema in members(schemas_of(document)) if kind else ():
        for each in group_version_kinds(schema):
            if each.kind == kind and join_group_version(each.group, each.version) == group_version:
                yield name, schema


def _in_manifest(change: Change, source: SourceDocument) -> _Spot | None:
    spec, place = mapping(source.document.get("spec")), change.location
    kind = within(spec, "names").get("kind")
    if change.id == "stored-version-removed":
        return _Spot(source, ("spec", "versions"), is_whole=False) if kind == place.kind else None
    is_of_kind = not place.kind or kind == place.kind or change.id == "kind-changed"
    for index, version in enumerate(map(mapping, array(spec.get("versions")) if is_of_kind else ())):
        name = f"apis/{spec.get('group')}/{version.get('name')}"
        if not version.get("served") or name != place.group_version:
            continue
        if change.id in _OF_MANIFEST:
            return _Spot(source, _OF_MANIFEST[change.id], is_whole=True)
        own: Path = ("spec", "versions", index)
        if "subresource" in change.id or change.id == "scale-path-changed":
            is_scale = change.id == "scale-path-changed"
            extra = ("scale", change.what) if is_scale else (change.what or "status",)
            return _walk_steps(source, version, own, ("subresources", *extra))
        root = mapping(version.get("schema")).get("openAPIV3Schema")
        if not place.path and (root is None or not _keyword(change)):
            return _Spot(source, own, is_whole=True)
        return _in_schema(change, source, (*own, "schema", "openAPIV3Schema"), root)
    return None


def _walk_steps(source: SourceDocument, value: Any, path: Path, steps: Path) -> _Spot:
    for step in steps:
        if not isinstance(value, dict) or step not in value:
            return _Spot(source, path, is_whole=False)
        value, path = value[step], (*path, step)
    return _Spot(source, path, is_whole=True)


def _in_schema(change: Change, source: SourceDocument, path: Path, schema: Any) -> _Spot:
    for match in _STEP.finditer(change.location.path):
        name = match[1] or (orjson.loads(match[2]) if match[2] else None)
        keyword = "properties" if name is not None else "items" if match[3] else "additionalProperties"
        steps: Path = (keyword,) if name is None else (keyword, name)
        for way, each in _parts(source.document, path, schema, 0):
            if (inner := _below(each, steps)) is not None:
                schema, path = inner, (*way, *steps)
                break
        else:
            return _Spot(source, path, is_whole=False)
    changed = _keyword(change)
    if changed is None:
        return _Spot(source, path, is_whole=True)
    for way, each in _parts(source.document, path, schema, 0):
        if changed in each:
            return _Spot(source, (*way, changed), is_whole=True)
    return _Spot(source, path, is_whole=False)


_MOST_DEEP: Final = 16


def _parts(document: Document, path: Path, schema: Any, depth: int) -> Iterator[tuple[Path, dict[str, Any]]]:
    """The schema and all that it takes over by ``$ref`` and ``allOf``."""
    if not isinstance(schema, dict) or depth > _MOST_DEEP:
        return
    yield path, schema
    reference = schema.get("$ref")
    name = name_in(reference, "schemas") if isinstance(reference, str) else None
    if name is not None:
        target = _below(document, ("components", "schemas", name))
        yield from _parts(document, ("components", "schemas", name), target, depth + 1)
    for index, part in enumerate(array(schema.get("allOf"))):
        yield from _parts(document, (*path, "allOf", index), part, depth + 1)


def _below(value: Any, steps: Path) -> Any:
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _keyword(change: Change) -> str | None:
    if change.id.startswith(("constraint-", "branch-", "composition-")):
        return str(change.what)
    return next((keyword for prefix, keyword in _KEYWORDS if change.id.startswith(prefix)), None)


def _positions(source: SourceDocument, paths: set[Path]) -> dict[Path, tuple[int, int] | None]:
    if len(source.data) > TEXT_MAX:
        return {}
    try:
        text = source.data.decode("utf-8-sig")
        is_json = text.lstrip()[:1] == "{"
        documents = [YamlDocument(orjson.loads(text))] if is_json else list(_read_yaml(text))
    except (UnicodeDecodeError, orjson.JSONDecodeError, ConverterError):
        return {}
    for document in documents:
        prefix = _place_in(document.value, source)
        if prefix is not None:
            places = Places((*prefix, *path) for path in paths)
            if is_json:
                places.read_json(text)
            else:
                places.read_yaml(document.marks)
            return {path: places.of((*prefix, *path)) for path in paths}
    return {}


def _read_yaml(text: str) -> Iterator[YamlDocument]:
    return read_all(text, dialect=KUBERNETES, duplicates=Duplicates.REPORTED, with_marks=True)


def _place_in(value: Any, source: SourceDocument) -> Path | None:
    """The path of the document in a value of its file: of a manifest the one in a List. None for another."""
    if not source.is_manifest:
        return None if value is None else ()
    items = enumerate(array(mapping(value).get("items")))
    candidates: list[tuple[Path, Any]] = [((), value), *((("items", index), item) for index, item in items)]
    name = shown_name(source.document)
    return next((path for path, each in candidates if shown_name(each) == name), None)
