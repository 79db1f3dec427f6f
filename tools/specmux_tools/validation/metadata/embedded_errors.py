"""Check objects embedded in a custom resource: kind, apiVersion and metadata (apiextensions,
pkg/apiserver/schema/objectmeta/validation.go)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from specmux_tools.validation.decoding.type_meta import parse_group_version
from specmux_tools.validation.errors import Undecodable
from specmux_tools.validation.field_errors import FieldError, invalid
from specmux_tools.validation.metadata.kind_names import NameRule
from specmux_tools.validation.metadata.names import label_1035_faults
from specmux_tools.validation.metadata.object_metadata import metadata_errors
from specmux_tools.validation.report import Path
from specmux_tools.validation.schema.structural import Structural


def embedded_errors(value: Any, schema: Structural) -> list[FieldError]:
    return list(_walk(value, schema, (), "")) if schema.has_embedded else []


def _walk(value: Any, schema: Structural | None, path: Path, place: str) -> Iterator[FieldError]:
    """``place``: the path in the form of messages, with keys of maps in brackets."""
    if schema is None or not schema.has_embedded:
        return
    if isinstance(value, dict):
        if schema.is_embedded:
            yield from _embed(value, path, place)
        for key, item in value.items():
            inner = schema.properties.get(key)
            if inner is not None:
                yield from _walk(item, inner, (*path, key), f"{place}.{key}" if place else key)
            else:
                yield from _walk(item, schema.additional, (*path, key), f"{place}[{key}]")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _walk(item, schema.items, (*path, index), f"{place}[{index}]")


def _embed(value: dict[str, Any], path: Path, place: str) -> Iterator[FieldError]:
    prefix = f"{place}." if place else ""
    for name, faults in (("apiVersion", _version_faults), ("kind", _kind_faults)):
        if name not in value:
            yield FieldError((*path, name), f"{prefix}{name}: Required value")
        elif isinstance(value[name], str):
            detail = faults(value[name])
            if detail:
                yield FieldError((*path, name), invalid(f"{prefix}{name}", value[name], detail))
    metadata = value.get("metadata")
    if isinstance(metadata, dict):
        is_namespaced = True if metadata.get("namespace") else None
        yield from metadata_errors(
            metadata,
            (*path, "metadata"),
            f"{prefix}metadata",
            is_namespaced=is_namespaced,
            needs_name=False,
            rule=NameRule.PATH_SEGMENT,
        )


def _version_faults(text: str) -> str:
    if not text:
        return "must not be empty"
    try:
        parse_group_version(text)
    except Undecodable as error:
        return error.text
    return ""


def _kind_faults(text: str) -> str:
    if not text:
        return "must not be empty"
    faults = label_1035_faults(text.lower())
    return f"may have mixed case, but should otherwise match: {','.join(faults)}" if faults else ""
