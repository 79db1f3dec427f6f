"""Schema objects. The walk goes by position, never by key name: real documents have properties called
``$ref``, ``default``, ``required`` and ``items`` (JSONSchemaProps), and what stands in ``example``,
``default``, ``enum`` or ``x-*`` is data.

A schema that needs no change is returned as it is, not copied.
"""

from __future__ import annotations

from typing import Any, Final

from specmux_converters.losses import Trace
from specmux_converters.swagger2.source import Source

TYPES: Final = frozenset({"string", "number", "integer", "boolean", "array", "object"})

_DATA: Final = frozenset(
    {
        "title", "description", "format", "default", "enum", "example", "required", "readOnly", "xml",
        "externalDocs", "deprecated", "writeOnly", "maximum", "minimum", "exclusiveMaximum",
        "exclusiveMinimum", "maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems",
        "maxProperties", "minProperties", "multipleOf",
    }
)  # fmt: skip
"""Keywords that mean the same in both standards and hold no schema."""

_PLAIN: Final = _DATA | {"type"}
_ONE: Final = frozenset({"items", "additionalProperties", "not"})
_MANY: Final = frozenset({"allOf", "anyOf", "oneOf"})


def convert_schema(node: Any, source: Source, trace: Trace) -> Any:
    """Raises InvalidDocument where a schema is required and something else stands."""
    if node.__class__ is not dict:
        trace.refuse("a schema object is required")
    if "$ref" in node:
        return _reference(node, source, trace)
    kind = node.get("type")
    if (kind is None or (kind.__class__ is str and kind in TYPES)) and node.keys() <= _PLAIN:
        return node
    return _keywords(node, source, trace)


def _keywords(node: dict[str, Any], source: Source, trace: Trace) -> dict[str, Any]:
    changed: dict[str, Any] = {}
    lost: list[str] = []
    for key, value in node.items():
        if key in _DATA or key == "type":
            continue
        if key == "properties":
            new: Any = _properties(value, source, trace)
        elif key in _ONE:
            if value.__class__ is bool and key == "additionalProperties":
                continue
            trace.path.append(key)
            new = (
                _tuple(value, source, trace)
                if key == "items" and value.__class__ is list
                else (convert_schema(value, source, trace))
            )
            trace.path.pop()
        elif key in _MANY:
            trace.path.append(key)
            new = _list(value, source, trace)
            trace.path.pop()
        elif key == "discriminator":
            if value.__class__ is not str:
                trace.refuse("a property name is required", key)
            new = {"propertyName": value}
        elif key[:2] == "x-":
            continue
        else:
            lost.append(key)
            continue
        if new is not value:
            changed[key] = new
    return _rewrite({**node, **changed} if changed else node, lost, trace)


def _properties(value: Any, source: Source, trace: Trace) -> Any:
    path = trace.path
    path.append("properties")
    if value.__class__ is not dict:
        trace.refuse("an object is required")
    changed = None
    for name, schema in value.items():
        path.append(name)
        new = convert_schema(schema, source, trace)
        path.pop()
        if new is not schema:
            if changed is None:
                changed = dict(value)
            changed[name] = new
    path.pop()
    return value if changed is None else changed


def _list(value: Any, source: Source, trace: Trace) -> Any:
    if value.__class__ is not list:
        trace.refuse("an array of schemas is required")
    converted = []
    for index, schema in enumerate(value):
        trace.path.append(index)
        converted.append(convert_schema(schema, source, trace))
        trace.path.pop()
    return value if all(a is b for a, b in zip(converted, value, strict=True)) else converted


def _tuple(value: list[Any], source: Source, trace: Trace) -> dict[str, Any]:
    trace.lose("tuple items", "OpenAPI 3.0 has one schema for all items; the positions are kept in x-items")
    schemas = _list(value, source, trace)
    return {"anyOf": schemas, "x-items": schemas} if schemas else {"x-items": schemas}


def _rewrite(node: dict[str, Any], lost: list[str], trace: Trace) -> dict[str, Any]:
    """The keywords that depend on each other or move. ``node`` may be the input's own: never changed."""
    kind = node.get("type")
    nullable = node.get("x-nullable") is True
    if not lost and not nullable and (kind is None or (kind.__class__ is str and kind in TYPES)):
        return node
    result = dict(node)
    if kind is not None:
        _type(kind, result, trace)
    if nullable:
        result["nullable"] = True
    for key in lost:
        trace.lose(f"schema keyword {key}", f"OpenAPI 3.0 has no such keyword; kept as x-{key}", key)
        result.setdefault(f"x-{key}", result.pop(key))
    return result


def _type(kind: Any, result: dict[str, Any], trace: Trace) -> None:
    if kind == "file":
        result.update(type="string", format="binary")
        return
    kinds = kind if kind.__class__ is list else [kind]
    if any(item.__class__ is not str for item in kinds):
        trace.refuse("a type name or an array of them is required", "type")
    known = [item for item in dict.fromkeys(kinds) if item in TYPES]
    unknown = [item for item in kinds if item not in TYPES and item != "null"]
    if unknown:
        trace.lose("type", "no such type in OpenAPI 3.0; kept as x-type", "type")
        result["x-type"] = kind
    del result["type"]
    if "null" in kinds:
        result["nullable"] = True
        if not known and not unknown:
            result["enum"] = [None]
    if len(known) == 1:
        result["type"] = known[0]
    elif known:
        _also(result, {"anyOf": [{"type": item} for item in known]})


def _also(result: dict[str, Any], constraint: dict[str, Any]) -> None:
    """Adds a constraint beside whatever the schema already says."""
    if result.keys().isdisjoint(constraint):
        result.update(constraint)
    else:
        result["allOf"] = [*result.get("allOf", ()), constraint]


def _reference(node: dict[str, Any], source: Source, trace: Trace) -> dict[str, Any]:
    """A bare reference stays bare; with siblings it becomes ``allOf: [{$ref}]`` beside them (k/k#106387)."""
    target = _target(node["$ref"], source, trace)
    if len(node) == 1:
        return target
    siblings = _keywords({key: value for key, value in node.items() if key != "$ref"}, source, trace)
    if "$ref" not in target:
        return {**siblings, **target}
    return {**siblings, "allOf": [target, *siblings.get("allOf", ())]}


def _target(ref: Any, source: Source, trace: Trace) -> dict[str, Any]:
    if ref.__class__ is not str:
        trace.refuse("a reference must be a string", "$ref")
    if not ref.startswith("#"):
        trace.lose("external $ref", "never fetched; kept as it is", "$ref")
        return {"$ref": ref}
    converted = source.schema_ref(ref)
    if converted is None:
        trace.is_local = False
        trace.lose("dangling $ref", "nothing is there; kept as x-unresolved-ref", "$ref")
        return {"x-unresolved-ref": ref}
    trace.refs.add(converted)
    return {"$ref": converted}
