"""Definitions as component schemas, with the two types that Swagger 2.0 could not state."""

from __future__ import annotations

from typing import Any

from specmux_converters.losses import Trace
from specmux_converters.swagger2.schemas import convert_schema
from specmux_converters.swagger2.source import Source


def convert_definition(name: str, node: Any, source: Source, trace: Trace) -> dict[str, Any]:
    converted: dict[str, Any] = convert_schema(node, source, trace)
    if source.profile == "kubernetes" and converted.get("type") == "string":
        alternatives = _alternatives(name, converted)
        if alternatives:
            return {**{k: v for k, v in converted.items() if k != "type"}, "oneOf": alternatives}
    return converted


def _alternatives(name: str, node: dict[str, Any]) -> list[dict[str, str]] | None:
    """What Kubernetes publishes for the types with OpenAPIV3OneOfTypes (kube-openapi pkg/common)."""
    if node.get("format") == "int-or-string":
        return [{"type": "integer"}, {"type": "string"}]
    if name.endswith(".api.resource.Quantity"):
        return [{"type": "string"}, {"type": "number"}]
    return None
