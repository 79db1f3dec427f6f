"""Keywords of a schema without subschemas: their values in OpenAPI 3.0, and the conversion of others."""

from __future__ import annotations

from typing import Any, Final

from specmux_converters.from_swagger2.reading.fields import (
    ANYTHING,
    COUNT,
    FLAG,
    NUMBER,
    TEXT,
    Kinds,
    is_present,
    without_repeats,
)
from specmux_converters.from_swagger2.reading.trace import Trace

DROPPED: Final = object()
"""Stands for a keyword that OpenAPI 3.0 does not have."""

MISTYPED: Final = object()
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
BOUNDS: Final = _COMPANIONS.keys() | {"multipleOf"} | {key for key, kinds in FIELDS.items() if kinds is COUNT}
PLAIN: Final[dict[str, type]] = {
    **{key: next(iter(kinds)) for key, kinds in FIELDS.items() if len(kinds) == 1 and key not in BOUNDS},
    "type": str,
}
"""Keywords that need no conversion if their values have these types."""


def convert_bound(key: str, value: Any, node: dict[str, Any], trace: Trace) -> Any:
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
    return DROPPED


def choices(key: str, value: Any, trace: Trace) -> Any:
    """``required`` and ``enum``, which must not be empty in OpenAPI 3.0."""
    if value.__class__ is not list:
        return MISTYPED
    if not value:
        if key == "enum":
            trace.lose("empty enum", "OpenAPI 3.0 has none; left out", key)
        return DROPPED
    if key == "required":
        if {*map(type, value)} != {str}:
            return MISTYPED
        return value if len(set(value)) == len(value) else list(dict.fromkeys(value))
    return without_repeats(key, value, trace)


def convert_type(result: dict[str, Any], trace: Trace) -> None:
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


def with_items(result: dict[str, Any], trace: Trace) -> dict[str, Any]:
    """An array requires ``items`` (OpenAPI 3.0.3, 4.7.24.1), even if anything is allowed."""
    if result.get("type") != "array" or "items" in result:
        return result
    trace.note("array without items", "OpenAPI 3.0 requires them; any are allowed")
    return {**result, "items": {}}


def make_nullable(result: dict[str, Any]) -> None:
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
