"""Parameters and headers: Swagger 2.0 writes a value's type beside its name, OpenAPI 3.0 in a schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from specmux_converters.losses import Trace
from specmux_converters.swagger2.schemas import convert_schema
from specmux_converters.swagger2.source import Source

LOCATIONS: Final = frozenset({"query", "header", "path"})
"""Where a parameter may be that stays a parameter: "body" and "formData" become request bodies."""

_SCHEMA_KEYS: Final = frozenset(
    {
        "type", "format", "items", "default", "enum", "maximum", "minimum", "exclusiveMaximum",
        "exclusiveMinimum", "maxLength", "minLength", "pattern", "maxItems", "minItems", "uniqueItems",
        "multipleOf",
    }
)  # fmt: skip
_PARAMETER_KEYS: Final = frozenset({"name", "in", "description", "required"})

_QUERY_STYLES: Final[Mapping[str, tuple[str, bool | None]]] = {
    "csv": ("form", False),
    "ssv": ("spaceDelimited", False),
    "pipes": ("pipeDelimited", False),
    "multi": ("form", True),
}
_STYLES: Final[Mapping[str, Mapping[str, tuple[str, bool | None]]]] = {
    "query": _QUERY_STYLES,
    "formData": _QUERY_STYLES,
    "path": {"csv": ("simple", None)},
    "header": {"csv": ("simple", None)},
}
"""Location -> collectionFormat -> (style, explode). What is missing has no equivalent."""


def convert_parameter(node: dict[str, Any], source: Source, trace: Trace) -> dict[str, Any]:
    """A query, header or path parameter."""
    location = node["in"]
    kept = _PARAMETER_KEYS | {"allowEmptyValue"} if location == "query" else _PARAMETER_KEYS
    result = {key: value for key, value in node.items() if key in kept or key[:2] == "x-"}
    result["schema"] = value_schema(node, source, trace)
    if location == "path" and node.get("required") is not True:
        trace.lose("optional path parameter", "a path parameter is always required")
        result["required"] = True
    result.update(serialisation(node, location, trace))
    _report_rest(node, trace, allowed={"allowEmptyValue"} if location == "query" else set())
    return result


def convert_header(node: Any, source: Source, trace: Trace) -> dict[str, Any]:
    if not isinstance(node, dict):
        trace.refuse("a header object is required")
    result = {key: value for key, value in node.items() if key == "description" or key[:2] == "x-"}
    result["schema"] = value_schema(node, source, trace)
    result.update(serialisation(node, "header", trace))
    _report_rest(node, trace, allowed=set())
    return result


def value_schema(node: dict[str, Any], source: Source, trace: Trace) -> dict[str, Any]:
    """The schema that stands open in a parameter or header."""
    schema = {key: value for key, value in node.items() if key in _SCHEMA_KEYS}
    if "items" in schema:
        schema["items"] = _items(schema["items"], source, trace)
    if node.get("x-nullable") is True:
        schema["nullable"] = True
    written = node.get("schema")
    if written is not None:  # not Swagger 2.0, but written by real generators
        trace.path.append("schema")
        schema |= convert_schema(written, source, trace)
        trace.path.pop()
    return _checked(schema, source, trace)


def _checked(schema: dict[str, Any], source: Source, trace: Trace) -> dict[str, Any]:
    items = schema.pop("items", None)
    converted: dict[str, Any] = convert_schema(schema, source, trace)
    if items is None:
        return converted
    return {**converted, "items": items}


def _items(node: Any, source: Source, trace: Trace) -> Any:
    """An Items object: a schema, but for a ``collectionFormat`` that OpenAPI 3.0 cannot say (OAI #1046)."""
    trace.path.append("items")
    if not isinstance(node, dict):
        trace.refuse("an items object is required")
    schema = {key: value for key, value in node.items() if key not in ("items", "collectionFormat")}
    result = convert_schema(schema, source, trace)
    if "collectionFormat" in node:
        trace.lose("nested collectionFormat", "no equivalent; kept as x-collectionFormat", "collectionFormat")
        result = {**result, "x-collectionFormat": node["collectionFormat"]}
    if "items" in node:
        result = {**result, "items": _items(node["items"], source, trace)}
    trace.path.pop()
    return result


def serialisation(node: dict[str, Any], location: str, trace: Trace) -> dict[str, Any]:
    """``style`` and ``explode`` for an array: csv is the default, and exploding is not."""
    if node.get("type") != "array":
        if "collectionFormat" in node:
            trace.lose("collectionFormat", "has no meaning on what is not an array", "collectionFormat")
        return {}
    separator = node.get("collectionFormat", "csv")
    style = _STYLES[location].get(separator) if isinstance(separator, str) else None
    if style is None:
        trace.lose(
            "collectionFormat",
            f"no equivalent in a {location}; kept as x-collectionFormat",
            "collectionFormat",
        )
        return {"x-collectionFormat": separator}
    name, explode = style
    return {"style": name} if explode is None else {"style": name, "explode": explode}


def _report_rest(node: dict[str, Any], trace: Trace, *, allowed: set[str]) -> None:
    known = _PARAMETER_KEYS | _SCHEMA_KEYS | {"collectionFormat", "schema"} | allowed
    for key in node.keys() - known:
        if key[:2] != "x-":
            trace.lose(f"parameter field {key}", "OpenAPI 3.0 has no such field here", key)
