"""Drop nulls and fill in defaults before validation of a custom resource (apiextensions,
pkg/apiserver/schema/defaulting). The given value is not modified."""

from __future__ import annotations

from typing import Any

from specmux_tools.validation.schema.structural import NO_DEFAULT, Structural


def settled(value: Any, schema: Structural) -> Any:
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
        inner = _field(key, schema)
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


def _field(key: str, schema: Structural | None) -> Structural | None:
    if schema is None:
        return None
    return schema.properties.get(key) or schema.additional


def _fill_default(value: Any, schema: Structural | None) -> Any:
    if schema is None or not schema.has_defaults:
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
