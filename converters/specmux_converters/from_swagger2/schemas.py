"""Schema objects and their keywords.

The walk goes by position, never by key name: real documents have properties called ``$ref``, ``default``,
``required`` and ``items`` (JSONSchemaProps), and ``example``, ``default``, ``enum`` and ``x-*`` contain data.

A schema that needs no change is returned as it is, not copied.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias

from specmux_converters.from_swagger2.defaults import FORMATS, fits
from specmux_converters.from_swagger2.reading.fields import (
    ANYTHING,
    ARRAY,
    COUNT,
    FLAG,
    NUMBER,
    OBJECT,
    TEXT,
    Kinds,
    is_plain_object,
    is_present,
    name_of,
    plain_object,
    without_repeats,
)
from specmux_converters.from_swagger2.reading.source import SwaggerSource
from specmux_converters.from_swagger2.reading.trace import Trace
from specmux_converters.losses import tokens_of

_DROPPED: Final = object()
"""Stands for a keyword that OpenAPI 3.0 does not have."""
_MISTYPED: Final = object()
"""Stands for a value of the wrong type."""

TYPES: Final = frozenset({"string", "number", "integer", "boolean", "array", "object"})

FIELDS: Final[dict[str, Kinds]] = {
    **dict.fromkeys(("title", "description", "format", "pattern"), TEXT),
    **dict.fromkeys(("maximum", "minimum", "multipleOf"), NUMBER),
    **dict.fromkeys(
        ("maxLength", "minLength", "maxItems", "minItems", "maxProperties", "minProperties"), COUNT
    ),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum", "uniqueItems"), FLAG),
    **dict.fromkeys(("readOnly", "writeOnly", "deprecated", "nullable"), FLAG),
    "example": ANYTHING,
}
"""Keywords with the same meaning in both standards and without subschemas."""

_APPLIED: Final = ("allOf", "anyOf", "oneOf", "not")
"""Schemas that apply to the same value."""

_COMPANIONS: Final = {"exclusiveMaximum": "maximum", "exclusiveMinimum": "minimum"}
_BOUNDS: Final = (
    _COMPANIONS.keys() | {"multipleOf"} | {key for key, kinds in FIELDS.items() if kinds is COUNT}
)
_PLAIN: Final[dict[str, type]] = {
    **{key: next(iter(kinds)) for key, kinds in FIELDS.items() if len(kinds) == 1 and key not in _BOUNDS},
    "type": str,
}
"""Keywords that need no conversion if their values have these types."""

_SIMPLE: Final = frozenset({"type", "description", "default", "format"})
_SIMPLE_TYPES: Final[dict[type, str]] = {str: "string", int: "integer", bool: "boolean"}
_OBJECTS: Final = ("externalDocs", "xml")
_KINDS: Final[dict[str, Kinds]] = {
    **FIELDS,
    **dict.fromkeys((*_OBJECTS, "additionalProperties", "not", "properties", "items"), OBJECT),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "required", "enum"), ARRAY),
    "discriminator": TEXT,
}
_NULLABLE: Final = frozenset({"default", "example"})
_JUDGED: Final = frozenset({"description", "default"})
"""Common siblings of references, which need no separate check."""
_LEAF_KINDS: Final = frozenset({"string", "number", "integer", "boolean", "object"})
Convert: TypeAlias = Callable[[str, Any, dict[str, Any], SwaggerSource, Trace], Any]
"""Key, value and containing schema -> the value in v3, or ``_DROPPED``."""


def convert_schema(node: Any, source: SwaggerSource, trace: Trace) -> dict[str, Any]:
    """Raises InvalidDocument if the value is not a schema."""
    if node.__class__ is not dict:
        if node is not None:
            trace.refuse("a schema object is required")
        trace.note("null", "stands for no schema; any value is allowed")
        return {}
    if "$ref" in node and node["$ref"].__class__ is not str:
        node = {**node}
        trace.keep_mistyped("$ref", node["$ref"], name_of(TEXT), node)
        del node["$ref"]
    return _reference(node, source, trace) if "$ref" in node else _keywords(node, source, trace)


def _keywords(node: dict[str, Any], source: SwaggerSource, trace: Trace) -> dict[str, Any]:
    """The schema's keywords; only those that need it are examined. Changes are made in a copy."""
    result = node
    is_plain = True
    for key, value in node.items():
        if value.__class__ is _PLAIN.get(key):
            continue
        convert = CONVERTERS.get(key)
        if convert is None:
            is_plain = is_plain and key[:2] == "x-"
            continue
        if value is None and key not in _NULLABLE:
            is_present(key, value, OBJECT, trace)
            new = _DROPPED
        else:
            new = convert(key, value, node, source, trace)
        if new is value:
            continue
        if result is node:
            result = {**node}
        if new is _DROPPED or new is _MISTYPED:
            del result[key]
            if new is _MISTYPED:
                wanted = "an array of strings" if key == "required" else name_of(_KINDS[key])
                trace.keep_mistyped(key, value, wanted, result)
        else:
            result[key] = new
    kind = node.get("type", "object")
    if is_plain and kind in TYPES and node.get("x-nullable") is not True:
        return _with_items(result, trace) if kind == "array" else result
    return _with_items(_without_v2(result, trace), trace)


def _field(key: str, value: Any, node: dict[str, Any], source: SwaggerSource, trace: Trace) -> Any:
    kinds = FIELDS[key]
    if kinds is COUNT and value.__class__ is float and value.is_integer():
        value = int(value)  # Go does not parse 3.0 as an integer
    if value.__class__ not in kinds:
        return _MISTYPED
    return _convert_bound(key, value, node, trace) if key in _BOUNDS else value


def _object(key: str, value: Any, node: dict[str, Any], source: SwaggerSource, trace: Trace) -> Any:
    return plain_object(key, value, trace) if is_plain_object(key, value) else _MISTYPED


def _schema(key: str, value: Any, node: dict[str, Any], source: SwaggerSource, trace: Trace) -> Any:
    if value.__class__ is bool and key == "additionalProperties":
        return value
    return _at(key, value, source, trace) if value.__class__ is dict else _MISTYPED


def _discriminator(key: str, name: Any, node: dict[str, Any], source: SwaggerSource, trace: Trace) -> Any:
    if name.__class__ is not str:
        return _MISTYPED
    mapping = source.names.mapping(tuple(trace.path))
    trace.refs.update(f"schemas/{tokens_of(target)[-1]}" for target in mapping.values())
    return {"propertyName": name, "mapping": mapping} if mapping else {"propertyName": name}


def _alternatives(key: str, value: Any, node: dict[str, Any], source: SwaggerSource, trace: Trace) -> Any:
    """``allOf``, ``anyOf`` and ``oneOf``, which must not be empty in OpenAPI 3.0."""
    if value.__class__ is not list:
        return _MISTYPED
    if not value:
        if key != "allOf":
            trace.lose(f"empty {key}", "OpenAPI 3.0 has none; left out", key)
        return _DROPPED
    return _list(key, value, source, trace)


def _default(key: str, value: Any, node: dict[str, Any], source: SwaggerSource, trace: Trace) -> Any:
    """A default that violates its own schema makes a v3 document invalid and is of no use."""
    if node.get("type") == _SIMPLE_TYPES.get(value.__class__, _DROPPED) and node.keys() <= _SIMPLE:
        form = node.get("format")
        if form is None or (form.__class__ is str and form not in FORMATS):
            return value
    if fits(value, node, source, trace):
        return value
    report = trace.note if value == {} else trace.lose  # Go prints {} for every struct without a default
    report("default", "does not fit its own schema; left out", "default")
    return _DROPPED


def _at(key: str | int, value: Any, source: SwaggerSource, trace: Trace) -> dict[str, Any]:
    trace.path.append(key)
    converted = convert_schema(value, source, trace)
    trace.path.pop()
    return converted


def _properties(key: str, value: Any, node: dict[str, Any], source: SwaggerSource, trace: Trace) -> Any:
    if value.__class__ is not dict:
        return _MISTYPED
    path = trace.path
    path.append(key)
    changed: dict[str, Any] | None = None
    for name, schema in value.items():
        if schema.__class__ is dict and schema.get("type").__class__ is str:
            # Most properties have at most a type, a description and a format.
            known = 1
            if schema.get("description").__class__ is str:
                known += 1
            if schema.get("format").__class__ is str:
                known += 1
            if known == len(schema) and schema["type"] in _LEAF_KINDS:
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


def _list(key: str, value: list[Any], source: SwaggerSource, trace: Trace) -> Any:
    trace.path.append(key)
    converted = [_at(index, schema, source, trace) for index, schema in enumerate(value)]
    trace.path.pop()
    return value if all(a is b for a, b in zip(converted, value, strict=True)) else converted


def _items(key: str, value: Any, node: dict[str, Any], source: SwaggerSource, trace: Trace) -> Any:
    """One schema for all items, or a tuple with one per position, which 3.0 does not have."""
    if value.__class__ is dict:
        return _at("items", value, source, trace)
    if value.__class__ is not list:
        return _MISTYPED
    trace.lose(
        "tuple items", "OpenAPI 3.0 has one schema for all items; the positions stay in x-items", "items"
    )
    schemas = _list("items", value, source, trace)
    return {"anyOf": schemas, "x-items": schemas} if schemas else {"x-items": schemas}


def _without_v2(node: dict[str, Any], trace: Trace) -> dict[str, Any]:
    """A copy without what exists only in Swagger 2.0: unknown keywords, ``x-nullable``, several types."""
    result: dict[str, Any] = {}
    for key, value in node.items():
        if key == "type" or key in CONVERTERS or key[:2] == "x-":
            result[key] = value
        else:
            trace.keep_unknown(key, value, result)
    if "type" in result:
        _convert_type(result, trace)
    if node.get("x-nullable") is True:
        _make_nullable(result)
    return result


def _reference(node: dict[str, Any], source: SwaggerSource, trace: Trace) -> dict[str, Any]:
    """A bare reference stays bare; with siblings it becomes ``allOf: [{$ref}]`` beside them (k/k#106387)."""
    ref = node["$ref"]
    found = source.schema_refs.get(ref)
    if found is None or found.is_hoisted:
        target = _target(ref, source, trace)
    else:
        trace.refs.add(found.component)
        target = found.node
    if len(node) == 1:
        return target
    siblings = {**node}
    del siblings["$ref"]
    if "default" in node and _default("default", node["default"], node, source, trace) is _DROPPED:
        del siblings["default"]
    if siblings.keys() <= _JUDGED and siblings.get("description", "").__class__ is str:
        siblings["allOf"] = [target]
        return siblings
    is_nullable = siblings.get("x-nullable") is True
    siblings = {**_keywords({**siblings, "x-nullable": None} if is_nullable else siblings, source, trace)}
    siblings["allOf"] = [target, *siblings.get("allOf", ())]
    if is_nullable:
        siblings["x-nullable"] = True
        _make_nullable(siblings)
    return siblings


def _target(ref: str, source: SwaggerSource, trace: Trace) -> dict[str, Any]:
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


def _convert_bound(key: str, value: Any, node: dict[str, Any], trace: Trace) -> Any:
    """A bound that JSON Schema does not allow (Wright-00, section 5) makes a document invalid and has no
    effect."""
    companion = _COMPANIONS.get(key)
    if companion is not None:
        if node.get(companion).__class__ in NUMBER:
            return value
        trace.note("bound", f"says nothing without {companion}; left out", key)
    elif value > 0 or (value == 0 and key != "multipleOf"):
        return value
    else:
        trace.note("bound", "must be positive; left out", key)
    return _DROPPED


def _choices(key: str, value: Any, node: dict[str, Any], source: SwaggerSource, trace: Trace) -> Any:
    """``required`` and ``enum``, which must not be empty in OpenAPI 3.0."""
    if value.__class__ is not list:
        return _MISTYPED
    if not value:
        if key == "enum":
            trace.lose("empty enum", "OpenAPI 3.0 has none; left out", key)
        return _DROPPED
    if key == "required":
        if {*map(type, value)} != {str}:
            return _MISTYPED
        return value if len(set(value)) == len(value) else list(dict.fromkeys(value))
    return without_repeats(key, value, trace)


def _convert_type(result: dict[str, Any], trace: Trace) -> None:
    """OpenAPI 3.0 has a single type, and ``nullable`` instead of "null"."""
    kind = result.pop("type")
    if kind is None:
        is_present("type", kind, TEXT, trace)
        return
    kinds = kind if kind.__class__ is list else [kind]
    if kinds == ["file"]:
        result.update(type="string", format="binary")
        return
    named = [item for item in kinds if item.__class__ is str]
    known = [item for item in dict.fromkeys(named) if item in TYPES]
    if "null" in named:
        result["nullable"] = True
    if not kinds or len(named) < len(kinds) or any(item not in TYPES and item != "null" for item in named):
        trace.lose("type", "no such type in OpenAPI 3.0; kept as x-type", "type")
        result["x-type"] = kind
    elif len(known) == 1:
        result["type"] = known[0]
    elif known:
        _also(result, {"anyOf": [_of_type(item, result) for item in known]})
    else:
        result["enum"] = [None]


def _of_type(kind: str, schema: dict[str, Any]) -> dict[str, Any]:
    """An alternative for one of several types. By OpenAPI 3.0.3 ``nullable`` applies only beside ``type``,
    and an array requires ``items``."""
    result: dict[str, Any] = {"type": kind}
    if kind == "array":
        result["items"] = schema.get("items", {})
    if schema.get("nullable") is True:
        result["nullable"] = True
    return result


def _with_items(result: dict[str, Any], trace: Trace) -> dict[str, Any]:
    """An array requires ``items`` (OpenAPI 3.0.3, 4.7.24.1), even if anything is allowed."""
    if result.get("type") != "array" or "items" in result:
        return result
    trace.note("array without items", "OpenAPI 3.0 requires them; any are allowed")
    return {**result, "items": {}}


def _make_nullable(result: dict[str, Any]) -> None:
    """Allow null, for which ``nullable: true`` alone is insufficient: by OpenAPI 3.0.3 it extends only
    ``type``, so an ``enum`` has to list null, and other schemas become one alternative."""
    result["nullable"] = True
    choices = result.get("enum")
    if isinstance(choices, list) and None not in choices:
        result["enum"] = [*choices, None]
    asked: dict[str, Any] = {key: result.pop(key) for key in _APPLIED if key in result}
    if not asked:
        return
    if "discriminator" in result:
        asked["discriminator"] = result.pop("discriminator")
    listed = asked.get("anyOf") if asked.keys() == {"anyOf"} else None
    alone = asked.get("allOf") if asked.keys() == {"allOf"} else None
    alternatives = listed or (alone if alone and len(alone) == 1 else [asked])
    result["anyOf"] = [*alternatives, {"nullable": True, "enum": [None]}]


def _also(result: dict[str, Any], constraint: dict[str, Any]) -> None:
    """Add a constraint to the schema's own."""
    if result.keys().isdisjoint(constraint):
        result.update(constraint)
    else:
        result["allOf"] = [*result.get("allOf", ()), constraint]


CONVERTERS: Final[dict[str, Convert]] = {
    **dict.fromkeys(FIELDS, _field),
    **dict.fromkeys(_OBJECTS, _object),
    **dict.fromkeys(("allOf", "anyOf", "oneOf"), _alternatives),
    **dict.fromkeys(("required", "enum"), _choices),
    **dict.fromkeys(("additionalProperties", "not"), _schema),
    "default": _default,
    "properties": _properties,
    "items": _items,
    "discriminator": _discriminator,
}
"""The keywords of OpenAPI 3.0 except ``type``."""
