"""Request bodies, from a body parameter or from form fields. Their content depends on the operation's
``consumes``, so even a shared one is built for each operation that names it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from specmux_converters.losses import Trace
from specmux_converters.swagger2.parameters import serialisation, value_schema
from specmux_converters.swagger2.schemas import convert_schema
from specmux_converters.swagger2.source import ANY_MEDIA_TYPE, Source

MULTIPART: Final = "multipart/form-data"
URLENCODED: Final = "application/x-www-form-urlencoded"


def body_content(
    node: dict[str, Any], media_types: Sequence[str], source: Source, trace: Trace
) -> dict[str, Any]:
    """The request body for one ``in: body`` parameter."""
    result = {
        key: value for key, value in node.items() if key in ("description", "required") or key[:2] == "x-"
    }
    media: dict[str, Any] = {}
    if "schema" in node:
        trace.path.append("schema")
        media["schema"] = convert_schema(node["schema"], source, trace)
        trace.path.pop()
    else:
        trace.lose("body without schema", "any content is allowed")
    result["content"] = dict.fromkeys(media_types or (ANY_MEDIA_TYPE,), media)
    for key in node.keys() - result.keys() - {"name", "in", "schema"}:
        trace.lose(f"parameter field {key}", "OpenAPI 3.0 has no such field here", key)
    return result


def form_content(
    fields: Sequence[tuple[dict[str, Any], Trace]], media_types: Sequence[str], source: Source
) -> dict[str, Any]:
    """The request body for all ``in: formData`` parameters of an operation, each with its own trace."""
    properties: dict[str, Any] = {}
    required: list[str] = []
    encoding: dict[str, Any] = {}
    has_file = False
    for node, trace in fields:
        name = node["name"]
        has_file = has_file or node.get("type") == "file"
        properties[name] = _field_schema(node, source, trace)
        if node.get("required") is True:
            required.append(name)
        style = serialisation(node, "formData", trace)
        if "style" in style:
            encoding[name] = style
        elif style:
            properties[name] = {**properties[name], **style}
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = required
    media: dict[str, Any] = {"schema": schema}
    if encoding:
        media["encoding"] = encoding
    content = dict.fromkeys(_form_types(media_types, has_file=has_file), media)
    return {"content": content, "required": True} if required else {"content": content}


def _field_schema(node: dict[str, Any], source: Source, trace: Trace) -> dict[str, Any]:
    schema = value_schema(node, source, trace)
    extra = {key: value for key, value in node.items() if key == "description" or key[:2] == "x-"}
    if "allowEmptyValue" in node:
        trace.lose("allowEmptyValue", "OpenAPI 3.0 has it for query parameters only", "allowEmptyValue")
    return {**extra, **schema}


def _form_types(media_types: Sequence[str], *, has_file: bool) -> list[str]:
    """A file travels as multipart only; without one the operation's own choice of the two counts."""
    if has_file:
        return [MULTIPART]
    return [item for item in media_types if item.partition(";")[0].strip() in (MULTIPART, URLENCODED)] or [
        URLENCODED
    ]
