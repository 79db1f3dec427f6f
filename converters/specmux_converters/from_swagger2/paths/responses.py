"""Response objects: the schema moves below each media type, headers get a schema of their own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from specmux_converters.from_swagger2.paths.parameters import convert_header
from specmux_converters.from_swagger2.reading.fields import DESCRIPTION, keep_fields
from specmux_converters.from_swagger2.reading.source import SwaggerSource, object_at
from specmux_converters.from_swagger2.reading.trace import Trace
from specmux_converters.from_swagger2.schema.schemas import convert_schema

_MOVED: Final = frozenset({"schema", "examples", "headers"})


def convert_response(
    node: dict[str, Any], offered: Sequence[str], source: SwaggerSource, trace: Trace
) -> dict[str, Any]:
    """``offered``: the operation's media types."""
    result = keep_fields(node, DESCRIPTION, _MOVED, trace)
    if "description" not in result:
        trace.note("response without description", "OpenAPI 3.0 requires one; an empty one is added")
        result["description"] = ""
    content = _content(node, offered, source, trace)
    if content:
        result["content"] = content
    headers = object_at(node, "headers", trace)
    if headers:
        result["headers"] = _headers(headers, source, trace)
    return result


def convert_short_response(
    node: dict[str, Any], offered: Sequence[str], source: SwaggerSource, trace: Trace
) -> dict[str, Any] | None:
    """Convert a response that has at most a text and a valid reference; None for any other. Most are like
    that, and converting is cheaper than recognizing a repeat."""
    description, schema = node.get("description"), node.get("schema")
    if description.__class__ is not str or not description.isascii():
        return None
    if len(node) == 1:
        return {"description": description}
    ref = schema.get("$ref") if schema.__class__ is dict and len(schema) == 1 else None
    if len(node) != 2 or ref.__class__ is not str or not ref.isascii():
        return None
    trace.path.append("schema")
    media = {"schema": convert_schema(schema, source, trace)}
    trace.path.pop()
    return {"description": description, "content": source.content(offered, media, trace)}


def _content(
    node: dict[str, Any], offered: Sequence[str], source: SwaggerSource, trace: Trace
) -> dict[str, Any]:
    content: dict[str, Any] = {}
    media: dict[str, Any] = {}
    if node.get("schema") is not None:
        trace.path.append("schema")
        media["schema"] = convert_schema(node["schema"], source, trace)
        trace.path.pop()
        content = source.content(offered, media, trace)
    for media_type, example in object_at(node, "examples", trace).items():
        content[media_type] = {**media, "example": example}
    return content


def _headers(headers: Mapping[str, Any], source: SwaggerSource, trace: Trace) -> dict[str, Any]:
    result = {}
    trace.path.append("headers")
    for name, header in headers.items():
        trace.path.append(name)
        result[name] = convert_header(name, header, source, trace)
        trace.path.pop()
    trace.path.pop()
    return result
