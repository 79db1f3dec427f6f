"""Schema objects. The walk goes by position, never by key name: real documents have properties called
``$ref``, ``default``, ``required`` and ``items`` (JSONSchemaProps), and what stands in ``example``,
``default``, ``enum`` or ``x-*`` is data.

A schema that needs no change is returned as it is, not copied.
"""

from __future__ import annotations

from itertools import permutations
from typing import Any, Final

from specmux_converters.swagger2.defaults import fits
from specmux_converters.swagger2.fields import (
    COUNT,
    NEVER,
    OBJECT,
    OBJECTS,
    TEXT,
    is_present,
    plain_object,
)
from specmux_converters.swagger2.formats import FORMATS
from specmux_converters.swagger2.keywords import (
    BOUNDS,
    DROPPED,
    FIELDS,
    PLAIN,
    TYPES,
    bound,
    choices,
    convert_type,
    make_nullable,
    with_items,
)
from specmux_converters.swagger2.source import Source
from specmux_converters.swagger2.trace import Trace

_SIMPLE: Final = frozenset({"type", "description", "default", "format"})
_SIMPLE_TYPES: Final[dict[type, str]] = {str: "string", int: "integer", bool: "boolean"}
_JUDGED: Final = frozenset({"description", "default"})
"""What most references have beside them, and needs no look of its own."""

_LEAF_KINDS: Final = frozenset({"string", "number", "integer", "boolean", "object"})
_LEAVES: Final = frozenset(
    keys
    for most in range(1, 4)
    for keys in permutations(("description", "type", "format"), most)
    if "type" in keys
)
"""The keys of most properties, in any order: where their values are texts, there is nothing to convert."""

_LISTS: Final = frozenset({"allOf", "anyOf", "oneOf"})
_KNOWN: Final = (
    FIELDS.keys()
    | OBJECTS.keys()
    | _LISTS
    | {
        "type",
        "default",
        "enum",
        "required",
        "properties",
        "items",
        "additionalProperties",
        "not",
        "discriminator",
    }
)


def convert_schema(node: Any, source: Source, trace: Trace) -> dict[str, Any]:
    """Raises InvalidDocument where a schema is required and something else stands."""
    if node.__class__ is not dict:
        if node is not None:
            trace.refuse("a schema object is required")
        trace.note("null", "stands for no schema; any value is allowed")
        return {}
    return _reference(node, source, trace) if "$ref" in node else _keywords(node, source, trace)


def _keywords(node: dict[str, Any], source: Source, trace: Trace) -> dict[str, Any]:
    """The schema's keywords, one by one where they need a look. A change is made in a copy."""
    result = node
    is_plain = True
    for key, value in node.items():
        if value.__class__ in PLAIN.get(key, NEVER):
            continue
        if key in _KNOWN and key != "type":
            new = _keyword(key, value, node, source, trace)
            if new is value:
                continue
            if result is node:
                result = {**node}
            if new is DROPPED:
                del result[key]
            else:
                result[key] = new
        elif key[:2] != "x-":
            is_plain = False
    kind = node.get("type", "object")
    if is_plain and kind.__class__ is str and kind in TYPES and node.get("x-nullable") is not True:
        return with_items(result, trace) if kind == "array" else result
    return with_items(_without_v2(result, trace), trace)


def _keyword(key: str, value: Any, node: dict[str, Any], source: Source, trace: Trace) -> Any:
    """The value of one known keyword in v3, ``DROPPED`` when it has none."""
    kinds = FIELDS.get(key)
    if kinds is not None:
        if kinds is COUNT and value.__class__ is float and value.is_integer():
            value = int(value)  # Go reads no 3.0 as an integer
        if not is_present(key, value, kinds, trace):
            return DROPPED
        return bound(key, value, node, trace) if key in BOUNDS else value
    if value is None and key != "default":
        is_present(key, value, OBJECT, trace)
        return DROPPED
    if key == "properties":
        return _properties(value, source, trace)
    if key == "items":
        return _items(value, source, trace)
    if key == "default":
        return _default(node, source, trace)
    if key == "required" or key == "enum":
        return choices(key, value, trace)
    if key == "additionalProperties" and value.__class__ is bool:
        return value
    if key == "additionalProperties" or key == "not":
        return _at(key, value, source, trace)
    if key in _LISTS:
        return _alternatives(key, value, source, trace)
    if key == "discriminator":
        return _discriminator(value, source, trace) if is_present(key, value, TEXT, trace) else DROPPED
    return plain_object(key, value, trace) if is_present(key, value, OBJECT, trace) else DROPPED


def _discriminator(name: str, source: Source, trace: Trace) -> dict[str, Any]:
    mapping = source.names.mapping(tuple(trace.path))
    return {"propertyName": name, "mapping": mapping} if mapping else {"propertyName": name}


def _alternatives(key: str, value: Any, source: Source, trace: Trace) -> Any:
    """``allOf``, ``anyOf`` and ``oneOf``, of which OpenAPI 3.0 allows no empty ones."""
    if value == []:
        if key != "allOf":
            trace.lose(f"empty {key}", "OpenAPI 3.0 has none; left out", key)
        return DROPPED
    return _list(key, value, source, trace)


def _default(node: dict[str, Any], source: Source, trace: Trace) -> Any:
    """A default that its own schema refuses makes a v3 document invalid, and says nothing to anybody."""
    value = node["default"]
    if node.get("type") == _SIMPLE_TYPES.get(value.__class__, DROPPED) and node.keys() <= _SIMPLE:
        form = node.get("format")
        if form is None or (form.__class__ is str and form not in FORMATS):
            return value
    if fits(value, node, source, trace):
        return value
    report = trace.note if value == {} else trace.lose  # what Go prints for every struct that says nothing
    report("default", "does not fit its own schema; left out", "default")
    return DROPPED


def _at(key: str | int, value: Any, source: Source, trace: Trace) -> dict[str, Any]:
    trace.path.append(key)
    converted = convert_schema(value, source, trace)
    trace.path.pop()
    return converted


def _properties(value: Any, source: Source, trace: Trace) -> Any:
    path = trace.path
    path.append("properties")
    if value.__class__ is not dict:
        trace.refuse("an object is required")
    changed: dict[str, Any] | None = None
    for name, schema in value.items():
        if schema.__class__ is dict and tuple(schema) in _LEAVES and _is_unchanged(schema):
            continue
        path.append(name)
        new = convert_schema(schema, source, trace)
        path.pop()
        if new is not schema:
            if changed is None:
                changed = dict(value)
            changed[name] = new
    path.pop()
    return value if changed is None else changed


def _is_unchanged(leaf: dict[str, Any]) -> bool:
    """Whether one with the keys of a leaf says nothing that has to be looked at."""
    for value in leaf.values():
        if value.__class__ is not str:
            return False
    return leaf["type"] in _LEAF_KINDS


def _list(key: str, value: Any, source: Source, trace: Trace) -> Any:
    if value.__class__ is not list:
        trace.refuse("an array of schemas is required", key)
    trace.path.append(key)
    converted = [_at(index, schema, source, trace) for index, schema in enumerate(value)]
    trace.path.pop()
    return value if all(a is b for a, b in zip(converted, value, strict=True)) else converted


def _items(value: Any, source: Source, trace: Trace) -> Any:
    """One schema for all items, or (not in 3.0) a tuple with one for each position."""
    if value.__class__ is not list:
        return _at("items", value, source, trace)
    trace.lose(
        "tuple items", "OpenAPI 3.0 has one schema for all items; the positions stay in x-items", "items"
    )
    schemas = _list("items", value, source, trace)
    return {"anyOf": schemas, "x-items": schemas} if schemas else {"x-items": schemas}


def _without_v2(node: dict[str, Any], trace: Trace) -> dict[str, Any]:
    """A copy without what only Swagger 2.0 says: unknown keywords, ``x-nullable``, types beyond one name."""
    result: dict[str, Any] = {}
    for key, value in node.items():
        if key in _KNOWN or key[:2] == "x-":
            result[key] = value
        else:
            trace.keep_unknown(key, value, result)
    if "type" in result:
        convert_type(result, trace)
    if node.get("x-nullable") is True:
        make_nullable(result)
    return result


def _reference(node: dict[str, Any], source: Source, trace: Trace) -> dict[str, Any]:
    """A bare reference stays bare; with siblings it becomes ``allOf: [{$ref}]`` beside them (k/k#106387)."""
    target = _target(node["$ref"], source, trace)
    if len(node) == 1:
        return target
    siblings = {**node}
    del siblings["$ref"]
    if "default" in node and _default(node, source, trace) is DROPPED:
        del siblings["default"]
    if siblings.keys() <= _JUDGED and siblings.get("description", "").__class__ is str:
        siblings["allOf"] = [target]
        return siblings
    is_nullable = siblings.get("x-nullable") is True
    siblings = {**_keywords({**siblings, "x-nullable": None} if is_nullable else siblings, source, trace)}
    siblings["allOf"] = [target, *siblings.get("allOf", ())]
    if is_nullable:
        siblings["x-nullable"] = True
        make_nullable(siblings)
    return siblings


def _target(ref: Any, source: Source, trace: Trace) -> dict[str, Any]:
    if ref.__class__ is not str:
        trace.refuse("a reference must be a string", "$ref")
    if not ref.startswith("#"):
        trace.lose("external $ref", "never fetched; kept as it is", "$ref")
        return {"$ref": ref}
    found = source.schema_ref(ref)
    if found is None:
        trace.foreign.append(ref)
        trace.lose("dangling $ref", "nothing is there; kept as x-unresolved-ref", "$ref")
        return {"x-unresolved-ref": ref}
    trace.refs.add(found.component)
    if found.is_hoisted:
        trace.foreign.append(ref)
    return found.node
