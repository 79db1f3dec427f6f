"""Shared objects: each definition, parameter and response becomes a component."""

from __future__ import annotations

from typing import Any, Final

from specmux_converters.from_swagger2.paths.bodies import FormField, convert_body, convert_form
from specmux_converters.from_swagger2.paths.parameters import LOCATIONS, convert_parameter
from specmux_converters.from_swagger2.paths.references import ReferenceTarget, find, located
from specmux_converters.from_swagger2.paths.responses import convert_response
from specmux_converters.from_swagger2.reading.source import SwaggerSource
from specmux_converters.from_swagger2.reading.trace import Trace
from specmux_converters.from_swagger2.schema.schemas import convert_schema
from specmux_converters.losses import tokens_of

_STEP_COST: Final = 64
"""Bytes of the budget for following a reference: a long chain is followed from each of its links."""


def convert_definition(name: str, node: Any, source: SwaggerSource, trace: Trace) -> dict[str, Any]:
    converted = convert_component(node, source, trace)
    if source.profile == "kubernetes" and converted.get("type") == "string":
        alternatives = _alternatives(name, converted)
        if alternatives:
            return {**{k: v for k, v in converted.items() if k != "type"}, "oneOf": alternatives}
    return converted


def convert_component(node: Any, source: SwaggerSource, trace: Trace) -> dict[str, Any]:
    if isinstance(node, dict) and len(node) == 1 and _is_endless(node.get("$ref"), source, trace):
        trace.lose("circular $ref", "leads back to itself; kept as x-unresolved-ref", "$ref")
        return {"x-unresolved-ref": node["$ref"]}
    return convert_schema(node, source, trace)


def _is_endless(ref: Any, source: SwaggerSource, trace: Trace) -> bool:
    """Whether a schema that is only this reference leads back to itself through others like it: resolving it
    would never end."""
    seen: set[str] = set()
    while isinstance(ref, str) and ref.startswith("#") and ref not in seen:
        tokens = tokens_of(ref)
        if tokens == trace.path:
            return True
        trace.foreign.append(ref)
        trace.spend(_STEP_COST)
        seen.add(ref)
        target = source.resolve(tokens)
        ref = target.get("$ref") if isinstance(target, dict) and len(target) == 1 else None
    return False


def _alternatives(name: str, node: dict[str, Any]) -> list[dict[str, str]] | None:
    """The schema that Kubernetes publishes for types with OpenAPIV3OneOfTypes (kube-openapi pkg/common)."""
    if node.get("format") == "int-or-string":
        return [{"type": "integer"}, {"type": "string"}]
    if name.endswith(".api.resource.Quantity"):
        return [{"type": "string"}, {"type": "number"}]
    return None


def parameter_kind(node: Any, source: SwaggerSource, trace: Trace) -> str | None:
    """The component kind of a shared parameter; None if it cannot be kept."""
    found = find(node, "parameters", source, trace)
    if not isinstance(found, ReferenceTarget):
        return "parameters" if "$ref" in found else None
    location = located(found)
    if location in ("body", "formData"):
        return "requestBodies"
    if location in LOCATIONS:
        return "parameters"
    found.trace.lose("parameter", "no such location in Swagger 2.0; left out", "in")
    return None


def convert_shared_parameter(node: Any, source: SwaggerSource, trace: Trace) -> dict[str, Any]:
    """A parameter or, if v3 expresses it as a body, a request body with the document's media types."""
    found = find(node, "parameters", source, trace)
    if not isinstance(found, ReferenceTarget):
        return found
    location = located(found)
    if location == "body":
        return convert_body(found.node, source.consumes, source, found.trace)
    if location == "formData":
        return convert_form([FormField(found.node, found.trace)], source.consumes, source)
    return convert_parameter(found.node, source, found.trace)


def convert_shared_response(node: Any, source: SwaggerSource, trace: Trace) -> dict[str, Any]:
    found = find(node, "responses", source, trace)
    if not isinstance(found, ReferenceTarget):
        return found if "$ref" in found else {"description": "", **found}
    return convert_response(found.node, source.produces, source, found.trace)
