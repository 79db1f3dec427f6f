"""Path items and operations: request bodies become parameters, contents become media types and one schema."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from specmux_converters.document import Document
from specmux_converters.from_swagger2.paths.operations import COPIED, METHODS
from specmux_converters.from_swagger2.reading.trace import Trace
from specmux_converters.to_swagger2.parameters import (
    convert_body,
    convert_header,
    convert_parameter,
    lose_from_media,
    one_schema,
)
from specmux_converters.to_swagger2.source import OpenAPISource, items_of, list_of, lose_others

_OF_OPERATION: Final = frozenset({*COPIED, "parameters", "requestBody", "responses"})
_KUBERNETES_ORDER: Final = (
    "*/*",
    "text/plain",
    "application/json",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/apply-patch+cbor",
    "application/yaml",
    "application/vnd.kubernetes.protobuf",
    "application/cbor",
    "application/json;stream=watch",
    "application/vnd.kubernetes.protobuf;stream=watch",
    "application/cbor-seq",
)
"""Media types in the order of apiservers' lists: in v3 they are keys, which have no order."""
_OF_FILE: Final = frozenset({"type", "format", "title", "description", "externalDocs", "example", "default"})
_OF_RESPONSE: Final = frozenset({"description", "content", "headers"})
_RANKS: Final = {media_type: rank for rank, media_type in enumerate(_KUBERNETES_ORDER)}


def convert_path_item(node: Any, source: OpenAPISource, trace: Trace) -> Document:
    node = source.component(node, trace)
    result: Document = {}
    if node is None:
        return result
    parameters = _parameters(node, source, trace)
    if parameters:
        result["parameters"] = parameters
    for key, value in node.items():
        if key in METHODS and isinstance(value, dict):
            trace.path.append(key)
            result[key] = _operation(value, source, trace)
            trace.path.pop()
        elif key.startswith("x-"):
            result[key] = value
    lose_others(node, ("parameters", *result), trace)
    return result


def _operation(node: Document, source: OpenAPISource, trace: Trace) -> Document:
    result = {key: value for key, value in node.items() if key in COPIED or key.startswith("x-")}
    lose_others(node, _OF_OPERATION, trace)
    parameters = _parameters(node, source, trace)
    if "requestBody" in node:
        trace.path.append("requestBody")
        bodies, consumes = convert_body(node["requestBody"], source, trace)
        trace.path.pop()
        parameters += bodies
        if consumes:
            result["consumes"] = _ordered(consumes, source)
    if parameters:
        if source.profile == "kubernetes":
            parameters.sort(key=lambda parameter: (parameter["name"], parameter["in"]))
        result["parameters"] = parameters
    trace.path.append("responses")
    responses, produces = source.once("responses", items_of(node, "responses"), trace, _responses)
    trace.path.pop()
    if produces:
        result["produces"] = produces
    result["responses"] = responses
    return result


def _parameters(node: Document, source: OpenAPISource, trace: Trace) -> list[Document]:
    written = list_of(node, "parameters")
    if not written:
        if node.get("parameters"):
            trace.lose("parameters", "an array is required; left out", "parameters")
        return []
    trace.path.append("parameters")
    found = source.once("parameters", written, trace, _converted)
    trace.path.pop()
    return [*found]  # a copy, since bodies and sharing modify it


def _converted(nodes: list[Any], source: OpenAPISource, trace: Trace) -> list[Document]:
    found = []
    for index, written in enumerate(nodes):
        trace.path.append(index)
        parameter = source.once("parameter", written, trace, convert_parameter)
        if parameter is not None:
            found.append(parameter)
        trace.path.pop()
    return found


def _is_binary(schema: Document) -> bool:
    """Whether it is what ``type: file`` becomes in v3."""
    return schema.get("type") == "string" and schema.get("format") == "binary"


def _ordered(media_types: Iterable[str], source: OpenAPISource) -> list[str]:
    unique = list(dict.fromkeys(media_types))
    if source.profile != "kubernetes":
        return unique
    return sorted(unique, key=lambda media_type: (_RANKS.get(media_type, len(_RANKS)), media_type))


def _responses(nodes: Document, source: OpenAPISource, trace: Trace) -> tuple[Document, list[str]]:
    """The responses, and the media types of all of them."""
    result: Document = {}
    produces: list[str] = []
    own: dict[str, list[str]] = {}
    for status, node in nodes.items():
        trace.path.append(status)
        if status.startswith("x-"):
            result[status] = node
        elif status != "default" and not (len(status) == 3 and status.isdecimal()):
            trace.lose("status", "Swagger 2.0 has no ranges of them; left out")
        else:
            result[status], own[status] = source.once("response", node, trace, _response)
            produces += own[status]
        trace.path.pop()
    produces = _ordered(produces, source)
    for status, media_types in own.items():
        if media_types and len(media_types) < len(produces):
            trace.note("media types", "Swagger 2.0 has one list for all responses", status, "content")
    return result or {"default": {"description": ""}}, produces


def _response(node: Any, source: OpenAPISource, trace: Trace) -> tuple[Document, list[str]]:
    """A response, and its media types."""
    result: Document = {"description": ""}
    node = source.component(node, trace)
    if node is None:
        return result, []
    content = items_of(node, "content")
    lose_others(node, _OF_RESPONSE if content else _OF_RESPONSE - {"content"}, trace)
    result |= {key: value for key, value in node.items() if key == "description" or key.startswith("x-")}
    if any("schema" in media for media in content.values() if isinstance(media, dict)):
        schema = one_schema(content, source, trace)
        if source.profile == "oas" and schema.keys() <= _OF_FILE and _is_binary(schema):
            schema = {**{key: value for key, value in schema.items() if key != "format"}, "type": "file"}
        result["schema"] = schema
    examples = {
        media_type: media["example"]
        for media_type, media in content.items()
        if isinstance(media, dict) and "example" in media
    }
    if examples:
        result["examples"] = examples
    lose_from_media(content, ("schema", "example"), trace)
    headers = {}
    for name, written in items_of(node, "headers").items():
        trace.path += ("headers", name)
        header = convert_header(written, source, trace)
        if header is not None:
            headers[name] = header
        del trace.path[-2:]
    if headers:
        result["headers"] = headers
    return result, list(content)
