"""Parameters and headers: Swagger 2.0 describes the value beside its name, OpenAPI 3.0 in a schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from specmux_converters.errors import cut
from specmux_converters.from_swagger2.reading.fields import (
    DESCRIPTION,
    FLAG,
    NEVER,
    TEXT,
    is_present,
    keep_fields,
)
from specmux_converters.from_swagger2.reading.source import SwaggerSource
from specmux_converters.from_swagger2.reading.trace import Trace
from specmux_converters.from_swagger2.schemas import TYPES, convert_schema

LOCATIONS: Final = frozenset({"query", "header", "path"})
"""Locations that remain parameters; "body" and "formData" become request bodies."""

SCHEMA_KEYS: Final = frozenset(
    {
        "type", "format", "items", "default", "enum", "maximum", "minimum", "exclusiveMaximum",
        "exclusiveMinimum", "maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems",
        "multipleOf",
    }
)  # fmt: skip
KEPT: Final = {"name": TEXT, "in": TEXT, "description": TEXT, "required": FLAG}
_SCALAR_KEYS: Final = {"type": TEXT, "format": TEXT, "pattern": TEXT, "uniqueItems": FLAG}
"""Keywords of most parameters, which need no conversion."""

_SCALARS: Final = TYPES - {"array"}
MOVED: Final = SCHEMA_KEYS | {"collectionFormat", "schema"}
"""Keywords that describe the value and its serialization."""

_QUERY_MOVED: Final = MOVED | {"allowEmptyValue"}

_IGNORED_HEADERS: Final = {
    "accept": "the media types of responses",
    "content-type": "the media types of the request body",
    "authorization": "security schemes",
}

_Styles: TypeAlias = Mapping[str, tuple[str, bool | None]]
_QUERY_STYLES: Final[_Styles] = {
    "csv": ("form", False),
    "ssv": ("spaceDelimited", False),
    "pipes": ("pipeDelimited", False),
    "multi": ("form", True),
}
_SIMPLE_STYLE: Final[_Styles] = {"csv": ("simple", None)}
STYLES: Final[Mapping[str, _Styles]] = {
    "query": _QUERY_STYLES,
    "formData": _QUERY_STYLES,
    "path": _SIMPLE_STYLE,
    "header": _SIMPLE_STYLE,
}
"""Location -> collectionFormat -> (style, explode). Missing combinations have no equivalent."""


def convert_parameter(node: dict[str, Any], source: SwaggerSource, trace: Trace) -> dict[str, Any]:
    """A query, header or path parameter: ``node["in"]`` is one of LOCATIONS."""
    location = node["in"]
    if location == "header":
        _lose_ignored(node["name"], trace)
    schema: dict[str, Any] = {}
    result: dict[str, Any] = {"schema": schema}
    for key, value in node.items():
        if value.__class__ in KEPT.get(key, NEVER):
            result[key] = value
        elif value.__class__ in _SCALAR_KEYS.get(key, NEVER):
            schema[key] = value
        else:
            return _full_parameter(node, location, source, trace)
    kind = schema.get("type")
    is_complete = location != "path" or node.get("required") is True
    if kind.__class__ is str and kind in _SCALARS and is_complete:
        return result
    return _full_parameter(node, location, source, trace)


def _full_parameter(
    node: dict[str, Any], location: str, source: SwaggerSource, trace: Trace
) -> dict[str, Any]:
    result = keep_fields(node, KEPT, _QUERY_MOVED if location == "query" else MOVED, trace)
    result["schema"] = value_schema(node, source, trace)
    if location == "path" and node.get("required") is not True:
        trace.note("optional path parameter", "a path parameter is always required")
        result["required"] = True
    empty = node.get("allowEmptyValue")
    if (
        location == "query"
        and "allowEmptyValue" in node
        and is_present("allowEmptyValue", empty, FLAG, trace)
    ):
        result["allowEmptyValue"] = empty
    result.update(serialisation(node, location, trace))
    return result


def _lose_ignored(name: str, trace: Trace) -> None:
    """Some headers are expressed by other means (OpenAPI 3.0.3, 4.7.12.2.1)."""
    means = _IGNORED_HEADERS.get(name.lower())
    if means is not None:
        trace.lose("header parameter", f"OpenAPI 3.0 ignores {cut(name)}; {means} say it", "name")


def convert_header(name: str, node: Any, source: SwaggerSource, trace: Trace) -> dict[str, Any]:
    if name.lower() == "content-type":
        trace.lose("response header", "OpenAPI 3.0 ignores it; the keys of content say the type")
    if node is None:
        trace.note("null", "stands for no header; any value is allowed")
        return {"schema": {}}
    if not isinstance(node, dict):
        trace.refuse("a header object is required")
    result = keep_fields(node, DESCRIPTION, MOVED, trace)
    result["schema"] = value_schema(node, source, trace)
    result.update(serialisation(node, "header", trace))
    return result


def value_schema(node: dict[str, Any], source: SwaggerSource, trace: Trace) -> dict[str, Any]:
    """The schema that is written inline in a parameter or header."""
    schema = {key: value for key, value in node.items() if key in SCHEMA_KEYS}
    if node.get("x-nullable") is True:
        schema["x-nullable"] = True
    result = convert_schema(schema, source, trace)
    if "x-nullable" in schema:
        result = {key: value for key, value in result.items() if key != "x-nullable"}
    if node.get("schema") is None:
        return result
    # Not in Swagger 2.0, but written by real generators beside or instead of the inline form.
    trace.path.append("schema")
    written = convert_schema(node["schema"], source, trace)
    trace.path.pop()
    return {**result, **written}


def serialisation(node: dict[str, Any], location: str, trace: Trace) -> dict[str, Any]:
    """``style`` and ``explode`` of an array. The default is csv in Swagger 2.0, and exploded in OpenAPI
    3.0."""
    if node.get("type") != "array":
        if "collectionFormat" not in node:
            return {}
        trace.lose(
            "collectionFormat", "only an array has one; kept as x-collectionFormat", "collectionFormat"
        )
        return {"x-collectionFormat": node["collectionFormat"]}
    separator = node.get("collectionFormat", "csv")
    style = STYLES[location].get(separator) if isinstance(separator, str) else None
    if style is None:
        reason = f"no equivalent in a {location} parameter; kept as x-collectionFormat"
        trace.lose("collectionFormat", reason, "collectionFormat")
        return {"x-collectionFormat": separator}
    name, explode = style
    return {"style": name} if explode is None else {"style": name, "explode": explode}
