"""Values under their structural schema: unknown fields are pruned, nulls dropped, defaults filled in
(apiextensions, pkg/apiserver/schema/pruning and defaulting). The given value is not modified: a result is a
copy where something changed."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from specmux_tools.validation.report import Path
from specmux_tools.validation.schema.structural import META_FIELDS, NO_DEFAULT, Structural


def prune(value: Any, schema: Structural, *, is_object: bool = True) -> tuple[Any, list[Path]]:
    """The value without unknown fields, and their paths, unordered. ``is_object``: whether it has its own
    kind and metadata."""
    pruner = _Pruner()
    return pruner.prune(value, schema, is_embedded=is_object), pruner.found


class _Pruner:
    def __init__(self) -> None:
        self.found: list[Path] = []
        self._path: list[str | int] = []

    def prune(self, value: Any, schema: Structural | None, *, is_embedded: bool = False) -> Any:
        if isinstance(value, dict):
            if schema is None:
                self.found.extend((*self._path, key) for key in value)
                return {} if value else value
            return self._object(value, schema, is_embedded=is_embedded or schema.is_embedded)
        if type(value) is list:
            if schema is None:
                return self._list(value, None, skips_scalars=False)
            return self._list(value, schema.items, skips_scalars=schema.preserves)
        return value

    def _object(self, value: dict[str, Any], schema: Structural, *, is_embedded: bool) -> Any:
        properties, path = schema.properties, self._path
        changed: dict[str, Any] = {}
        unknown: set[str] = set()
        for key, item in value.items():
            if is_embedded and key in META_FIELDS:
                continue
            inner = properties.get(key)
            if inner is None and not schema.has_additional:
                if not schema.preserves:
                    unknown.add(key)
                    if path or key not in META_FIELDS:
                        self.found.append((*path, key))
                continue
            if type(item) is list or isinstance(item, dict):
                path.append(key)
                pruned = self.prune(item, inner or schema.additional)
                path.pop()
                if pruned is not item:
                    changed[key] = pruned
        if not unknown and not changed:
            return value
        return {key: changed.get(key, item) for key, item in value.items() if key not in unknown}

    def _list(self, value: list[Any], items: Structural | None, *, skips_scalars: bool) -> Any:
        """Below a preserving list, items without a schema are skipped as well (skipPrune)."""
        if skips_scalars and items is None:
            return value
        result = None
        for index, item in enumerate(value):
            self._path.append(index)
            pruned = self._skip(item, items) if skips_scalars and items else self.prune(item, items)
            self._path.pop()
            if pruned is not item:
                result = result or list(value)
                result[index] = pruned
        return value if result is None else result

    def _skip(self, value: Any, schema: Structural) -> Any:
        """skipPrune: descend only where there is a schema."""
        if isinstance(value, dict):
            return self._object(value, replace(schema, preserves=True), is_embedded=schema.is_embedded)
        if type(value) is list:
            return self._list(value, schema.items, skips_scalars=True)
        return value


def apply_defaults(value: Any, schema: Structural) -> Any:
    """The object as validated: a copy if anything was dropped or filled in."""
    return _fill_default(_without_nulls(value, schema), schema)


def _without_nulls(value: Any, schema: Structural | None) -> Any:
    if isinstance(value, dict):
        return _object_without_nulls(value, schema)
    if type(value) is list:
        items = schema.items if schema is not None else None
        kept = [_without_nulls(item, items) if isinstance(item, dict | list) else item for item in value]
        return kept if any(new is not old for new, old in zip(kept, value, strict=True)) else value
    return value


def _object_without_nulls(value: dict[str, Any], schema: Structural | None) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    dropped = []
    for key, item in value.items():
        if item is not None and not isinstance(item, dict | list):
            continue
        inner = schema and (schema.properties.get(key) or schema.additional)
        if item is None:
            if inner is not None and not inner.is_nullable and inner.default is NO_DEFAULT:
                dropped.append(key)
            continue
        kept = _without_nulls(item, inner)
        if kept is not item:
            changed[key] = kept
    if not changed and not dropped:
        return value
    return {key: changed.get(key, item) for key, item in value.items() if key not in dropped}


def _fill_default(value: Any, schema: Structural) -> Any:
    if not schema.has_defaults:
        return value
    if isinstance(value, dict):
        return _object_defaulted(value, schema)
    if type(value) is list and schema.items is not None:
        return [_fill_default(_fill(item, schema.items), schema.items) for item in value]
    return value


def _object_defaulted(value: dict[str, Any], schema: Structural) -> dict[str, Any]:
    result = dict(value)
    for name, inner in schema.properties.items():
        if inner.default is NO_DEFAULT or inner.default is None:
            continue
        if name not in result or (result[name] is None and not inner.is_nullable):
            result[name] = inner.default
    for key, item in result.items():
        named = schema.properties.get(key)
        if named is not None:
            result[key] = _fill_default(item, named)
        elif schema.additional is not None:
            result[key] = _fill_default(_fill(item, schema.additional), schema.additional)
    return result


def _fill(item: Any, schema: Structural) -> Any:
    """The default for an item or map value that is null but not nullable; null without one."""
    if item is None and not schema.is_nullable and schema.default is not NO_DEFAULT:
        return schema.default
    return item
