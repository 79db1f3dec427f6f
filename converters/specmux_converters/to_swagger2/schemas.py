"""Schema objects. The walk goes by position: properties may be called ``$ref`` or ``nullable``.

The ``kubernetes`` profile writes what kube-openapi publishes as v2: references with siblings, no defaults,
one type. The ``oas`` profile writes valid Swagger 2.0, and keeps the rest as extensions.
"""

from __future__ import annotations

from typing import Any, Final

from specmux_converters.from_swagger2.reading.trace import Trace
from specmux_converters.from_swagger2.schemas import CONVERTERS
from specmux_converters.json_values import within
from specmux_converters.to_swagger2.source import lose_others, write_reference

ONLY_V3: Final = ("oneOf", "anyOf", "not", "nullable", "writeOnly", "deprecated")
"""Keywords that Swagger 2.0 does not have."""

_NESTING: Final = ("properties", "items", "additionalProperties", "allOf", "discriminator")
_KEPT: Final = (CONVERTERS.keys() | {"type"}) - {*ONLY_V3, *_NESTING}
_REF: Final = "$ref"
_CHANGED: Final = frozenset((_REF, *_NESTING, "default", *ONLY_V3))
"""Keywords that are not copied to a published schema; most schemas have none."""


def publish_schema(node: Any, trace: Trace) -> dict[str, Any]:
    """The schema as kube-openapi publishes those of Go types in v2."""
    if not isinstance(node, dict):
        return _any_schema(trace)
    if _CHANGED.isdisjoint(node):
        return {**node}
    target = _wrapped_reference(node)
    result: dict[str, Any] = {}
    for key, value in node.items():
        match key:
            case _ if key not in _CHANGED:
                result[key] = value
            case "$ref":
                result[_REF] = write_reference(value) if isinstance(value, str) else value
            case "allOf" if target is not None:
                result[_REF] = write_reference(target)
            case "default":
                trace.lose("default", "Kubernetes publishes none in v2; left out", key)
            case "properties" if isinstance(value, dict):
                result[key] = {
                    name: {**item}
                    if isinstance(item, dict) and _CHANGED.isdisjoint(item)
                    else _below(publish_schema, item, trace, key, name)
                    for name, item in value.items()
                }
            case "items" | "additionalProperties" if isinstance(value, dict):
                result[key] = _below(publish_schema, value, trace, key)
            case "oneOf" | "anyOf" if (kind := _one_type(value)) is not None and "type" not in node:
                result["type"] = kind
                if node.get("format") != "int-or-string":
                    trace.lose(key, f"Kubernetes publishes {kind} alone in v2", key)
            case "allOf" | "oneOf" | "anyOf" | "not" | "nullable" | "writeOnly" | "deprecated":
                trace.lose(key, "Swagger 2.0 has no such keyword; left out", key)
            case "discriminator":
                _discriminate(value, result, trace)
            case _:
                result[key] = value
    return result


def _wrapped_reference(node: dict[str, Any]) -> str | None:
    """The reference that is wrapped in ``allOf`` because of its siblings (k/k#106387)."""
    match node.get("allOf"):
        case [{"$ref": str() as ref, **others}] if not others:
            return ref
        case _:
            return None


def _one_type(alternatives: Any) -> str | None:
    """The v2 type of Go types with several: IntOrString and Quantity are strings."""
    if not isinstance(alternatives, list) or not alternatives:
        return None
    kinds = [item.get("type") for item in alternatives if isinstance(item, dict) and item.keys() == {"type"}]
    return "string" if len(kinds) == len(alternatives) and "string" in kinds else None


def valid_schema(node: Any, trace: Trace) -> dict[str, Any]:
    """The schema as valid Swagger 2.0; anything else becomes an extension."""
    if not isinstance(node, dict):
        return _any_schema(trace)
    if isinstance(node.get(_REF), str):
        for key in node:
            if key != _REF:
                trace.note(f"field {key}", "stands beside a $ref, where it is ignored; left out", key)
        return {_REF: write_reference(node[_REF])}
    result: dict[str, Any] = {}
    for key, value in node.items():
        match key:
            case "properties" if isinstance(value, dict):
                result[key] = {
                    name: _below(valid_schema, item, trace, key, name) for name, item in value.items()
                }
            case "items" | "additionalProperties" if isinstance(value, dict):
                result[key] = _below(valid_schema, value, trace, key)
            case "additionalProperties":
                result[key] = value
            case "allOf" if isinstance(value, list):
                result[key] = [
                    _below(valid_schema, item, trace, key, index) for index, item in enumerate(value)
                ]
            case "nullable":
                if value:
                    result["x-nullable"] = value
                    trace.note(key, "kept as x-nullable", key)
            case "oneOf" | "anyOf" if isinstance(value, list):
                trace.lose(key, f"Swagger 2.0 has no such keyword; kept as x-{key}", key)
                result[f"x-{key}"] = [
                    _below(valid_schema, item, trace, key, index) for index, item in enumerate(value)
                ]
            case "not":
                trace.lose(key, "Swagger 2.0 has no such keyword; kept as x-not", key)
                result["x-not"] = _below(valid_schema, value, trace, key)
            case "discriminator":
                _discriminate(value, result, trace)
            case _ if key in _KEPT or key.startswith("x-"):
                result[key] = value
            case _:
                trace.lose(f"field {key}", f"Swagger 2.0 has no such keyword; kept as x-{key}", key)
                result[f"x-{key}"] = value
    return result


def custom_schema(node: Any, trace: Trace, *, is_root: bool = False) -> dict[str, Any]:
    """The schema as apiextensions publishes that of a CustomResourceDefinition in v2 (ToStructuralOpenAPIV2,
    pkg/controller/openapi/v2/conversion.go): kubectl takes no other form of nullable and preserved fields.
    """
    if not isinstance(node, dict):
        return _any_schema(trace)
    preserves = node.get("x-kubernetes-preserve-unknown-fields") is True
    if is_root and preserves:
        trace.lose("x-kubernetes-preserve-unknown-fields", "kubectl would refuse any field; an open object")
        return {"type": "object", **{k: v for k, v in node.items() if k in _OF_KIND}}
    target = _wrapped_reference(node)
    if target is not None or _REF in node:
        return publish_schema(node, trace)
    result = dict(node)
    for key in ("allOf", "oneOf", "anyOf", "not"):
        if result.pop(key, None) is not None:
            trace.lose(key, "left out of v2, which has no alternatives", key)
    is_nullable = result.pop("nullable", None) is True
    if is_nullable:
        trace.lose("nullable", "kubectl takes no nullable or preserved schemas; omitted", "nullable")
    native = within(node, "properties") if is_root or node.get(_EMBEDDED) is True else {}
    if is_nullable or preserves:
        for key in ("items", "properties"):
            if result.pop(key, None):
                trace.lose(key, "kubectl takes no nullable or preserved schemas; omitted", key)
    kind = result.get("type")
    is_open = is_nullable or (kind == "array" and "items" not in result) or (kind == "object" and preserves)
    if is_open and result.pop("type", None) is not None:
        trace.lose("type", "kubectl takes no nullable or preserved schemas; omitted", "type")
    if preserves and node.get(_EMBEDDED) is True:
        _drop_added(result, trace)
    _require(result, trace)
    if is_nullable and not preserves and native:
        result["properties"] = {name: native[name] for name in _NATIVE if name in native}
    for key, value in result.items():
        if key == "properties" and isinstance(value, dict):
            result[key] = {
                name: _below(custom_schema, item, trace, key, name) for name, item in value.items()
            }
        elif key in ("items", "additionalProperties") and isinstance(value, dict):
            result[key] = _below(custom_schema, value, trace, key)
    return result


_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_NATIVE: Final = ("apiVersion", "kind", "metadata")
_OF_KIND: Final = frozenset({"x-kubernetes-group-version-kind", "x-kubernetes-selectable-fields"})


def _drop_added(result: dict[str, Any], trace: Trace) -> None:
    """Drop what the builder appends to ``required`` in v3 alone (builder.go, addEmbeddedProperties), but not
    what the definition itself has: sorted, as by controller-gen, it has ``apiVersion`` before ``kind``."""
    required = result.get("required")
    if isinstance(required, list) and required[-1:] == ["apiVersion"]:
        trace.note("required", "apiVersion and kind are added in v3 alone; left out", "required")
        result["required"] = required[: -2 if required[-2:-1] == ["kind"] else -1]
        if not result["required"]:
            del result["required"]


def _require(result: dict[str, Any], trace: Trace) -> None:
    """A nullable field is not required: kubectl would refuse null."""
    required = result.get("required")
    if not isinstance(required, list):
        return
    nullable = [
        name
        for name, schema in within(result, "properties").items()
        if isinstance(schema, dict) and schema.get("nullable") is True
    ]
    kept = [name for name in required if name not in nullable]
    if within(result, "additionalProperties").get("nullable") is True:
        kept = []
    if len(kept) < len(required):
        trace.lose("required", "nullable fields are not required in v2", "required")
        result["required"] = kept
    if not kept:
        del result["required"]


def _discriminate(value: Any, result: dict[str, Any], trace: Trace) -> None:
    if not isinstance(value, dict) or not isinstance(value.get("propertyName"), str):
        trace.lose("discriminator", "an object with a property's name is required; left out", "discriminator")
        return
    result["discriminator"] = value["propertyName"]
    trace.path.append("discriminator")
    lose_others(value, ("propertyName", "mapping"), trace, keeps_extensions=False)
    trace.path.pop()
    if value.get("mapping"):
        trace.lose("mapping", "Swagger 2.0 has none; kept as x-mapping", "discriminator", "mapping")
        result["x-mapping"] = value["mapping"]


def _any_schema(trace: Trace) -> dict[str, Any]:
    trace.lose("value of another type", "a schema object is required; any value is allowed")
    return {}


def _below(convert: Any, node: Any, trace: Trace, *tokens: str | int) -> dict[str, Any]:
    trace.path += tokens
    converted: dict[str, Any] = convert(node, trace)
    del trace.path[len(trace.path) - len(tokens) :]
    return converted
