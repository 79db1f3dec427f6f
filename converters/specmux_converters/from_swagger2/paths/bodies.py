"""Request bodies, from a body parameter or from form fields, and responses, whose schema moves below each
media type.

The content of a body depends on the operation's ``consumes``, so a shared body is built again for each
operation that differs from the document in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from specmux_converters.errors import cut
from specmux_converters.from_swagger2.paths.parameters import (
    MOVED,
    convert_header,
    serialisation,
    value_schema,
)
from specmux_converters.from_swagger2.reading.fields import DESCRIPTION, FLAG, TEXT, keep_fields
from specmux_converters.from_swagger2.reading.source import SwaggerSource, object_at
from specmux_converters.from_swagger2.reading.trace import Trace
from specmux_converters.from_swagger2.schemas import convert_schema
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.media_types import essence

MULTIPART: Final = "multipart/form-data"
URLENCODED: Final = "application/x-www-form-urlencoded"

USUAL_NAME: Final = "body"
"""The conventional name of a body parameter; the name is never sent."""

_BODY_KEYS: Final = {"description": TEXT, "required": FLAG}
_BODY_MOVED: Final = frozenset({"name", "in", "schema"})
_FIELD_MOVED: Final = MOVED | {"name", "in", "allowEmptyValue"}


_RESPONSE_MOVED: Final = frozenset({"schema", "examples", "headers"})


@dataclass(frozen=True, slots=True)
class FormField:
    """A parameter with ``in: formData``, and its place."""

    node: dict[str, Any]
    trace: Trace


def convert_body(
    node: dict[str, Any], accepted: Sequence[str], source: SwaggerSource, trace: Trace
) -> dict[str, Any]:
    """The request body of one ``in: body`` parameter. ``accepted``: the operation's media types."""
    result = keep_fields(node, _BODY_KEYS, _BODY_MOVED, trace)
    if node["name"] != USUAL_NAME:
        trace.note("name of a body", "a request body has none; left out", "name")
    media: dict[str, Any] = {}
    if node.get("schema") is None:
        trace.note("body without schema", "Swagger 2.0 requires one; any content is allowed")
    else:
        trace.path.append("schema")
        media["schema"] = convert_schema(node["schema"], source, trace)
        trace.path.pop()
    result["content"] = source.content(accepted, media, trace)
    return result


def convert_form(
    fields: Sequence[FormField], accepted: Sequence[str], source: SwaggerSource
) -> dict[str, Any]:
    """The request body of all form fields of an operation."""
    properties: dict[str, Any] = {}
    encoding: dict[str, Any] = {}
    for each in fields:
        name = each.node["name"]
        properties[name] = _field_schema(each.node, source, each.trace)
        style = serialisation(each.node, "formData", each.trace)
        if "style" in style:
            encoding[name] = style
        else:
            properties[name] = {**properties[name], **style}
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    required = [each.node["name"] for each in fields if each.node.get("required") is True]
    if required:
        schema["required"] = list(dict.fromkeys(required))
    media: dict[str, Any] = {"schema": schema}
    if encoding:
        media["encoding"] = encoding
    has_file = any(_is_file(each.node) or _is_file(each.node.get("items")) for each in fields)
    offered = _form_types(accepted, has_file=has_file)
    if MULTIPART in [essence(item) for item in offered]:
        _lose_styles(fields, encoding)
    for media_type in accepted:
        if media_type not in offered:
            reason = f"{cut(media_type)}: such a form is not sent so; left out"
            fields[0].trace.lose("media type of a form", reason)
    content = source.content(offered, media, fields[0].trace)
    return {"content": content, "required": True} if required else {"content": content}


def _field_schema(node: dict[str, Any], source: SwaggerSource, trace: Trace) -> dict[str, Any]:
    about = keep_fields(node, _BODY_KEYS, _FIELD_MOVED, trace)
    about.pop("required", None)
    if "allowEmptyValue" in node:
        reason = "OpenAPI 3.0 has it for query parameters only; kept as x-allowEmptyValue"
        trace.lose("allowEmptyValue", reason, "allowEmptyValue")
        about["x-allowEmptyValue"] = node["allowEmptyValue"]
    return {**about, **value_schema(node, source, trace)}


def _lose_styles(fields: Sequence[FormField], encoding: Mapping[str, Any]) -> None:
    """In multipart each item is a separate part: ``style`` applies only to the other form (OpenAPI 3.0.3,
    4.7.15.1)."""
    for each in fields:
        if encoding.get(each.node["name"], {}).get("explode") is False:
            reason = "OpenAPI 3.0 ignores it in multipart, where each item is a part"
            each.trace.lose("collectionFormat", reason)


def _is_file(node: Any) -> bool:
    return isinstance(node, dict) and node.get("type") == "file"


def _form_types(accepted: Sequence[str], *, has_file: bool) -> list[str]:
    """A file requires multipart; otherwise the operation chooses between the two form types."""
    wanted = (MULTIPART,) if has_file else (MULTIPART, URLENCODED)
    chosen = [item for item in accepted if essence(item) in wanted]
    return chosen or [MULTIPART if has_file else URLENCODED]


def convert_response(
    node: dict[str, Any], offered: Sequence[str], source: SwaggerSource, trace: Trace
) -> dict[str, Any]:
    """``offered``: the operation's media types."""
    result = keep_fields(node, DESCRIPTION, _RESPONSE_MOVED, trace)
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
