"""Parameters, headers and bodies: Swagger 2.0 describes the value beside its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from specmux_converters.errors import cut
from specmux_converters.openapi2.schemas import published_schema, valid_schema
from specmux_converters.openapi2.source import OpenAPISource, items_of, list_of
from specmux_converters.swagger2.paths.bodies import MULTIPART, URLENCODED, USUAL_NAME
from specmux_converters.swagger2.paths.parameters import KEPT, LOCATIONS, SCHEMA_KEYS, STYLES
from specmux_converters.swagger2.reading.trace import Trace
from specmux_converters.swagger2.schema.keywords import TYPES

_KEPT: Final = frozenset({*KEPT, "allowEmptyValue"})
_FORMS: Final = (MULTIPART, URLENCODED)
_DEPTH_MAX: Final = 8
"""Deepest nesting of lists: a schema may be recursive, and a parameter has no references."""

_VALUES: Final = TYPES - {"object"}
"""Types that a parameter may have."""


def schema_of(source: OpenAPISource) -> Callable[[Any, Trace], dict[str, Any]]:
    return published_schema if source.profile == "kubernetes" else valid_schema


def convert_parameter(node: Any, source: OpenAPISource, trace: Trace) -> dict[str, Any] | None:
    """None for a parameter that Swagger 2.0 cannot express."""
    node = source.component(node, trace)
    if not isinstance(node, dict) or not isinstance(node.get("name"), str):
        return None
    location = node.get("in")
    if not isinstance(location, str) or location not in LOCATIONS:
        trace.lose("parameter", f"Swagger 2.0 has none in {cut(str(location))}; left out")
        return None
    result = {key: value for key, value in node.items() if key in _KEPT or key.startswith("x-")}
    if location == "path":
        result["required"] = True
    result.update(_value(node, str(location), source, trace))
    _lose_rest(node, trace)
    return result


def convert_header(node: Any, source: OpenAPISource, trace: Trace) -> dict[str, Any] | None:
    node = source.component(node, trace)
    if not isinstance(node, dict):
        return None
    result = {key: value for key, value in node.items() if key == "description" or key.startswith("x-")}
    result.update(_value(node, "header", source, trace))
    return result


def _lose_rest(node: dict[str, Any], trace: Trace) -> None:
    for key in ("deprecated", "allowReserved", "example", "examples"):
        if node.get(key):
            trace.lose(f"field {key}", "Swagger 2.0 has no such field here; left out", key)


def _value(node: dict[str, Any], location: str, source: OpenAPISource, trace: Trace) -> dict[str, Any]:
    """The inlined schema, and how a list is serialized."""
    if "schema" not in node and node.get("content"):
        trace.lose("content", "Swagger 2.0 has no media types of a parameter; a string", "content")
        return {"type": "string"}
    trace.path.append("schema")
    result = _open(node.get("schema"), source, trace)
    trace.path.pop()
    if result["type"] == "array":
        written = _collection_format(node, location, trace)
        if written is not None and written != "csv":
            result["collectionFormat"] = written
    return result


def _open(schema: Any, source: OpenAPISource, trace: Trace, depth: int = 0) -> dict[str, Any]:
    """A schema as fields of a parameter: no objects, references or composition."""
    if depth > _DEPTH_MAX:
        trace.lose("items", "lists in each other without an end; a string", "items")
        return {"type": "string"}
    converted = schema_of(source)(source.schema(schema, trace), trace)
    kept = {key: value for key, value in converted.items() if key in SCHEMA_KEYS or key.startswith("x-")}
    for key in converted.keys() - kept.keys() - {"description", "title", "$ref", "allOf"}:
        trace.lose(f"field {key}", "Swagger 2.0 has no such field in a parameter; left out", key)
    if "allOf" in converted or "$ref" in converted:
        trace.lose("composition", "a parameter of Swagger 2.0 has no schema; left out")
    if not isinstance(kept.get("type"), str) or kept["type"] not in _VALUES:
        if converted:
            trace.lose("type", "a parameter of Swagger 2.0 has one simple type; a string", "type")
        kept = {"type": "string", **{key: value for key, value in kept.items() if key.startswith("x-")}}
    if kept["type"] == "array":
        items = schema.get("items") if isinstance(schema, dict) else None
        kept["items"] = _open(items, source, trace, depth + 1)
    return kept


def _collection_format(node: dict[str, Any], location: str, trace: Trace) -> str | None:
    """The inverse of STYLES."""
    style = node.get("style", "form" if location in ("query", "formData") else "simple")
    explode = node.get("explode", style == "form")
    for name, (known, exploded) in STYLES[location].items():
        if known == style and (exploded is None or exploded == explode):
            return name
    trace.lose("style", f"{cut(str(style))}: Swagger 2.0 has no such form of a list; csv", "style")
    return None


def convert_body(node: Any, source: OpenAPISource, trace: Trace) -> tuple[list[dict[str, Any]], list[str]]:
    """The parameters for a request body, and the media types that it accepts."""
    node = source.component(node, trace)
    content = items_of(node, "content")
    forms = [media_type for media_type in content if media_type.partition(";")[0].strip() in _FORMS]
    if forms and len(forms) == len(content) and source.profile == "oas":
        fields = _form(content[forms[0]], forms[0], source, trace)
        if fields is not None:
            return fields, forms
    body: dict[str, Any] = {"name": USUAL_NAME, "in": "body"}
    if isinstance(node, dict):
        body |= {key: value for key, value in node.items() if key == "description" or key.startswith("x-")}
        if node.get("required") is True:
            body["required"] = True
    body["schema"] = one_schema(content, source, trace)
    return [body], list(content)


def one_schema(content: dict[str, Any], source: OpenAPISource, trace: Trace) -> dict[str, Any]:
    """The schema of the first media type. Differing ones are reported."""
    schemas = {media_type: items_of(media, "schema") for media_type, media in content.items()}
    first = next(iter(schemas), None)
    for media_type, schema in schemas.items():
        if schema != schemas.get(str(first)):
            reason = f"{cut(media_type)}: Swagger 2.0 has one schema for all media types; left out"
            trace.lose("schema of a media type", reason, "content", media_type)
    if first is None:
        return {}
    trace.path += ("content", first, "schema")
    converted = schema_of(source)(schemas[first], trace)
    del trace.path[-3:]
    return converted


def _form(media: Any, media_type: str, source: OpenAPISource, trace: Trace) -> list[dict[str, Any]] | None:
    """The fields of a form; None for a schema that names none."""
    schema = source.schema(items_of(media, "schema"), trace)
    properties = items_of(schema, "properties")
    if not properties:
        return None
    required = list_of(schema, "required")
    fields = []
    trace.path += ("content", media_type, "schema", "properties")
    for name, written in properties.items():
        trace.path.append(name)
        field: dict[str, Any] = {"name": name, "in": "formData"}
        target = source.schema(written, trace)
        if isinstance(target, dict) and isinstance(target.get("description"), str):
            field["description"] = target["description"]
        if name in required:
            field["required"] = True
        if isinstance(target, dict) and target.get("format") == "binary" and media_type == MULTIPART:
            field["type"] = "file"
        else:
            style = items_of(items_of(media, "encoding"), name)
            field.update(_value({"schema": target, **style}, "formData", source, trace))
        fields.append(field)
        trace.path.pop()
    del trace.path[-4:]
    return fields
