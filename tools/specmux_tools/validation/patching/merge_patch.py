"""Apply JSON merge patches (RFC 7386) like gopkg.in/evanphx/json-patch.v4."""

from __future__ import annotations

from typing import Any

from specmux_tools.validation.errors import PatchError


def apply_merge_patch(document: dict[str, Any], patch: Any) -> Any:
    """The patched document; the given one is modified. Raises PatchError for a scalar as patch."""
    if isinstance(patch, dict):
        _merge(document, patch)
        return document
    if isinstance(patch, list):
        return _without_nulls(patch)
    raise PatchError("Invalid JSON Patch")


def _merge(document: dict[str, Any], patch: dict[str, Any]) -> None:
    for key, value in patch.items():
        if value is None:
            document.pop(key, None)
            continue
        current = document.get(key)
        if isinstance(current, dict) and isinstance(value, dict):
            _merge(current, value)
        else:
            document[key] = _without_nulls(value)


def _without_nulls(value: Any) -> Any:
    """Without members that are null; items that are null remain."""
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    return [_without_nulls(item) for item in value] if isinstance(value, list) else value
