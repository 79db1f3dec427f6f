"""Find the fields of a custom resource that its schema does not define (apiextensions,
pkg/apiserver/schema/pruning).

Values are not modified: the result is a copy where something was pruned.
"""

from __future__ import annotations

from typing import Any

from specmux_tools.validation.report import Path
from specmux_tools.validation.schema.structural import META_FIELDS, Structural


def prune(value: Any, schema: Structural, *, is_object: bool = True) -> tuple[Any, list[Path]]:
    """The value without unknown fields, and their paths, unordered. ``is_object``: whether it has its own
    kind and metadata."""
    pruner = _Pruner()
    pruned = pruner.prune(value, schema, is_embedded=is_object)
    return pruned, pruner.found


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
            items = schema.items if schema is not None else None
            if schema is not None and schema.preserves:
                return self._list(value, items, skips_scalars=True)
            return self._list(value, items, skips_scalars=False)
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
            preserving = Structural(
                schema.properties,
                schema.has_additional,
                schema.additional,
                preserves=True,
                is_embedded=schema.is_embedded,
            )
            return self._object(value, preserving, is_embedded=schema.is_embedded)
        if type(value) is list:
            return self._list(value, schema.items, skips_scalars=True)
        return value
