"""Checks lists of type set or map for duplicate items or keys (apiextensions,
pkg/apiserver/schema/listtype)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from specmux_converters.go.text import json_text
from specmux_tools.validation.field_errors import FieldError, duplicate, invalid
from specmux_tools.validation.report import Path
from specmux_tools.validation.schema.structural import Structural


def list_errors(value: Mapping[str, Any], schema: Structural) -> list[FieldError]:
    return list(_object(value, schema, (), "")) if schema.has_lists else []


def _object(value: Mapping[str, Any], schema: Structural, path: Path, place: str) -> Iterator[FieldError]:
    for key, item in value.items():
        if schema.additional is not None:
            yield from _inner(item, schema.additional, (*path, key), f"{place}[{key}]")
        inner = schema.properties.get(key)
        if inner is not None:
            yield from _inner(item, inner, (*path, key), f"{place}.{key}" if place else key)


def _inner(value: Any, schema: Structural, path: Path, place: str) -> Iterator[FieldError]:
    if not schema.has_lists:
        return
    if isinstance(value, dict):
        yield from _object(value, schema, path, place)
    elif isinstance(value, list):
        yield from _list(value, schema, path, place)


def _list(value: list[Any], schema: Structural, path: Path, place: str) -> Iterator[FieldError]:
    if schema.list_type == "set":
        for index in _repeated(value):
            yield FieldError((*path, index), duplicate(f"{place}[{index}]", value[index]))
    elif schema.list_type == "map":
        yield from _map(value, schema.list_keys, path, place)
    if schema.items is not None:
        for index, item in enumerate(value):
            yield from _inner(item, schema.items, (*path, index), f"{place}[{index}]")


def _map(value: list[Any], names: tuple[str, ...], path: Path, place: str) -> Iterator[FieldError]:
    for index, item in enumerate(value):
        if item is not None and not isinstance(item, dict):
            text = invalid(f"{place}[{index}]", item, "must be an object for an array of list-type map")
            yield FieldError((*path, index), text)
            return
    keys = [{name: item[name] for name in names if name in item} if item else {} for item in value]
    for index in _repeated(keys):
        yield FieldError((*path, index), duplicate(f"{place}[{index}]", keys[index]))


def _repeated(items: list[Any]) -> Iterator[int]:
    """Indices of items that occur for the second time; further occurrences are not reported."""
    times: dict[str, int] = {}
    for index, item in enumerate(items):
        # 1 and 1.0 differ as scalars in Go, but have equal texts.
        key = f"{type(item).__name__}:{json_text(item)}" if isinstance(item, float) else json_text(item)
        times[key] = times.get(key, 0) + 1
        if times[key] == 2:
            yield index
