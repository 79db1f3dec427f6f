"""Reduce a built-in object to the fields of its Go type."""

from __future__ import annotations

from typing import Any

from specmux_tools.validation.decoding.types.typed_nodes import List, Map, Node, Struct


def known_fields(value: Any, node: Node) -> Any:
    """Of a decoded value. Nulls are dropped like unset fields."""
    match node:
        case Struct() if isinstance(value, dict):
            fields = node.fields
            return {
                key: known_fields(item, fields[key]) if key in fields else item
                for key, item in value.items()
                if item is not None and (key in fields or node.is_open)
            }
        case Map() if isinstance(value, dict):
            return {key: known_fields(item, node.value) for key, item in value.items()}
        case List() if isinstance(value, list):
            return [known_fields(item, node.item) for item in value]
    return value
