"""OpenAPI v3 with its shared parts written where they are used."""

from __future__ import annotations

from typing import Any


def written_out(node: Any, components: Any) -> Any:
    """Without references to parameters, bodies and responses."""
    if isinstance(node, list):
        return [written_out(item, components) for item in node]
    if not isinstance(node, dict):
        return node
    ref = node.get("$ref")
    if isinstance(ref, str) and ref.startswith("#/components/") and "/schemas/" not in ref:
        _, _, kind, name = ref.split("/")
        return written_out(components[kind][name], components)
    return {key: written_out(item, components) for key, item in node.items()}
