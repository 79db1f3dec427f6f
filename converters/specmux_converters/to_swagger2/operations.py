"""Path items and operations: request bodies become parameters, contents become media types and one schema."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Any, Final

from specmux_converters.document import Document
from specmux_converters.errors import cut
from specmux_converters.from_swagger2.paths.bodies import MULTIPART, URLENCODED, USUAL_NAME
from specmux_converters.from_swagger2.paths.operations import COPIED, METHODS
from specmux_converters.from_swagger2.paths.parameters import KEPT, LOCATIONS, SCHEMA_KEYS, STYLES
from specmux_converters.from_swagger2.reading.trace import Trace
from specmux_converters.from_swagger2.schemas import TYPES
from specmux_converters.json_values import within
from specmux_converters.media_types import essence
from specmux_converters.to_swagger2.schemas import publish_schema, valid_schema
from specmux_converters.to_swagger2.source import OpenAPISource, list_of, lose_others

_KEPT: Final = frozenset({*KEPT, "allowEmptyValue"})
_FORMS: Final = (MULTIPART, URLENCODED)
_DEPTH_MAX: Final = 8
"""Deepest nesting of lists: a schema may be recursive, and a parameter has no references."""

_OF_TEXT: Final = frozenset({"minLength", "maxLength"})
_OF_VALUE: Final = frozenset({"schema", "content", "style", "explode"})
_VALUES: Final = TYPES - {"object"}
"""Types that a parameter may have."""


def schema_of(source: OpenAPISource) -> Callable[[Any, Trace], dict[str, Any]]:
    return publish_schema if source.profile == "kubernetes" else valid_schema


def convert_parameter(node: Any, source: OpenAPISource, trace: Trace) -> dict[str, Any] | None:
    """None for a parameter that Swagger 2.0 cannot express."""
    node = source.component(node, trace)
    if node is None:
        return None
    if not isinstance(node.get("name"), str):
        trace.lose("parameter", "a name is required; left out")
        return None
    location = node.get("in")
    if not isinstance(location, str) or location not in LOCATIONS:
        trace.lose("parameter", f"Swagger 2.0 has none in {cut(str(location))}; left out")
        return None
    result = {key: value for key, value in node.items() if key in _KEPT or key.startswith("x-")}
    if location == "path" and result.get("required") is not True:
        trace.note("required", "a parameter of the path is required", "required")
        result["required"] = True
    result.update(_value(node, str(location), source, trace))
    lose_others(node, _KEPT | _OF_VALUE, trace)
    return result


def convert_header(node: Any, source: OpenAPISource, trace: Trace) -> dict[str, Any] | None:
    node = source.component(node, trace)
    if node is None:
        return None
    result = {key: value for key, value in node.items() if key == "description" or key.startswith("x-")}
    result.update(_value(node, "header", source, trace))
    lose_others(node, _OF_VALUE | {"description"}, trace)
    return result


def _value(node: dict[str, Any], location: str, source: OpenAPISource, trace: Trace) -> dict[str, Any]:
    """The inlined schema, and how a list is serialized."""
    if "schema" not in node and node.get("content"):
        trace.lose("content", "Swagger 2.0 has no media types of a parameter; a string", "content")
        return {"type": "string"}
    trace.path.append("schema")
    result = _flatten_schema(node.get("schema"), source, trace)
    trace.path.pop()
    return result | _write_collection_format(result["type"], node, location, trace)


def _flatten_schema(schema: Any, source: OpenAPISource, trace: Trace, depth: int = 0) -> dict[str, Any]:
    """A schema as fields of a parameter: no objects, references or composition."""
    if depth > _DEPTH_MAX:
        trace.lose("items", "lists in each other without an end; a string")
        return {"type": "string"}
    schema = {} if schema is None else source.component(schema, trace)
    converted = schema_of(source)(schema, trace)
    kept = {key: value for key, value in converted.items() if key in SCHEMA_KEYS or key.startswith("x-")}
    for key in converted.keys() - kept.keys() - {"$ref", "allOf"}:
        trace.lose(f"field {key}", "Swagger 2.0 has no such field in a parameter; left out", key)
    if "allOf" in converted or "$ref" in converted:
        trace.lose("composition", "a parameter of Swagger 2.0 has no schema; left out", "allOf")
    if not isinstance(kept.get("type"), str) or kept["type"] not in _VALUES:
        report = trace.lose if converted else trace.note
        report("type", "a parameter of Swagger 2.0 has one simple type; a string", "type")
        kept = _of_text(kept, trace)
    if kept["type"] == "array":
        trace.path.append("items")
        kept["items"] = _flatten_schema(within({"": schema}, "").get("items"), source, trace, depth + 1)
        trace.path.pop()
    return kept


def _of_text(keywords: dict[str, Any], trace: Trace) -> dict[str, Any]:
    """The keywords that mean something of a string; others are reported."""
    result: dict[str, Any] = {"type": "string"}
    for key, value in keywords.items():
        listed = value if key == "enum" and isinstance(value, list) else [value]
        if key in _OF_TEXT or key.startswith("x-") or all(isinstance(each, str) for each in listed):
            result.setdefault(key, value)
        elif key != "type":
            trace.lose(f"field {key}", "says nothing of a string; left out", key)
    return result


def _write_collection_format(kind: str, node: dict[str, Any], location: str, trace: Trace) -> dict[str, str]:
    """``collectionFormat`` of a list: the inverse of STYLES."""
    usual = "form" if location in ("query", "formData") else "simple"
    style = node.get("style", usual)
    if kind != "array":
        if style != usual:
            trace.lose("style", f"{cut(str(style))}: Swagger 2.0 has one form of a value; left out", "style")
        return {}
    explode = node.get("explode", style == "form")
    for name, (known, exploded) in STYLES[location].items():
        if known == style and (exploded is None or exploded == explode):
            return {"collectionFormat": name} if name != "csv" else {}
    key = "style" if "style" in node else "explode"
    trace.lose(key, f"{cut(str(style))}: Swagger 2.0 has no such form of a list; csv", key)
    return {}


def convert_body(node: Any, source: OpenAPISource, trace: Trace) -> tuple[list[dict[str, Any]], list[str]]:
    """The parameters for a request body, and the media types that it accepts."""
    node = source.component(node, trace) or {}
    content = within(node, "content")
    lose_others(
        node, ("content", "description", "required") if content else ("description", "required"), trace
    )
    forms = [media_type for media_type in content if essence(media_type) in _FORMS]
    if forms and len(forms) == len(content) and source.profile == "oas":
        fields = _form(content[forms[0]], forms[0], source, trace)
        if fields is not None:
            _lose_from_form(node, fields, trace)
            _lose_other_schemas(content, trace)
            lose_from_media(content, ("schema", "encoding"), trace)
            return fields, forms
    body: dict[str, Any] = {"name": USUAL_NAME, "in": "body"}
    body |= {key: value for key, value in node.items() if key == "description" or key.startswith("x-")}
    if node.get("required") is True:
        body["required"] = True
    body["schema"] = one_schema(content, source, trace)
    lose_from_media(content, ("schema",), trace)
    return [body], list(content)


def lose_from_media(content: dict[str, Any], known: Container[str], trace: Trace) -> None:
    """Report what the media types say beside ``known``; Swagger 2.0 has only their names."""
    for media_type, media in content.items():
        trace.path += ("content", media_type)
        lose_others(within(content, media_type), known, trace, keeps_extensions=False)
        if media and not isinstance(media, dict):
            trace.lose("value of another type", "an object is required; left out")
        del trace.path[-2:]


def _lose_from_form(node: dict[str, Any], fields: list[dict[str, Any]], trace: Trace) -> None:
    """Report what a body says that its fields cannot."""
    lose_others(node, ("content", "required"), trace, keeps_extensions=False)
    if node.get("required") is True and not any("required" in each for each in fields):
        trace.note("required", "no field of the form is required; left out", "required")


def one_schema(content: dict[str, Any], source: OpenAPISource, trace: Trace) -> dict[str, Any]:
    """The schema of the first media type. Differing ones are reported."""
    first = next(iter(content), None)
    if first is None:
        return {}
    _lose_other_schemas(content, trace)
    trace.path += ("content", first, "schema")
    converted = schema_of(source)(within(content, first).get("schema", {}), trace)
    del trace.path[-3:]
    return converted


def _lose_other_schemas(content: dict[str, Any], trace: Trace) -> None:
    first, *others = [within(content, media_type).get("schema", {}) for media_type in content]
    for media_type, schema in zip([*content][1:], others, strict=True):
        if schema != first:
            reason = f"{cut(media_type)}: Swagger 2.0 has one schema for all media types; left out"
            trace.lose("schema of a media type", reason, "content", media_type)


def _form(media: Any, media_type: str, source: OpenAPISource, trace: Trace) -> list[dict[str, Any]] | None:
    """The fields of a form; None for a schema that names none."""
    schema = source.component(within(media, "schema"), trace) or {}
    properties = within(schema, "properties")
    if not properties:
        return None
    required = list_of(schema, "required")
    fields = []
    trace.path += ("content", media_type, "schema")
    lose_others(schema, ("type", "properties", "required"), trace, keeps_extensions=False)
    if any(name not in properties for name in required if isinstance(name, str)):
        trace.lose("required", "a name that no field has; left out", "required")
    trace.path.append("properties")
    for name, written in properties.items():
        trace.path.append(name)
        field: dict[str, Any] = {"name": name, "in": "formData"}
        target = dict(source.component(written, trace) or {})
        if isinstance(target.get("description"), str):
            field["description"] = target.pop("description")
        if name in required:
            field["required"] = True
        if target.get("format") == "binary" and media_type == MULTIPART:
            field |= {"type": "file", **{key: value for key, value in target.items() if key[:2] == "x-"}}
            lose_others(target, ("type", "format"), trace)
        else:
            field |= _flatten_schema(target, source, trace)
        fields.append(field)
        trace.path.pop()
    del trace.path[-2:]
    trace.path.append("encoding")
    encoding = within(media, "encoding")
    lose_others(encoding, properties, trace, keeps_extensions=False)
    for field in fields:
        trace.path.append(field["name"])
        about = within(encoding, field["name"])
        field |= _write_collection_format(field["type"], about, "formData", trace)
        lose_others(about, ("style", "explode"), trace, keeps_extensions=False)
        trace.path.pop()
    del trace.path[-3:]
    return fields


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
            result["consumes"] = _order_media_types(consumes, source)
    if parameters:
        if source.profile == "kubernetes":
            parameters.sort(key=lambda parameter: (parameter["name"], parameter["in"]))
        result["parameters"] = parameters
    trace.path.append("responses")
    responses, produces = source.once("responses", within(node, "responses"), trace, _responses)
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
    found = source.once("parameters", written, trace, _convert_parameters)
    trace.path.pop()
    return [*found]  # a copy, since bodies and sharing modify it


def _convert_parameters(nodes: list[Any], source: OpenAPISource, trace: Trace) -> list[Document]:
    found = []
    for index, written in enumerate(nodes):
        trace.path.append(index)
        parameter = source.once("parameter", written, trace, convert_parameter)
        if parameter is not None:
            found.append(parameter)
        trace.path.pop()
    return found


def _order_media_types(media_types: Iterable[str], source: OpenAPISource) -> list[str]:
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
    produces = _order_media_types(produces, source)
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
    content = within(node, "content")
    lose_others(node, _OF_RESPONSE if content else _OF_RESPONSE - {"content"}, trace)
    result |= {key: value for key, value in node.items() if key == "description" or key.startswith("x-")}
    if any("schema" in media for media in content.values() if isinstance(media, dict)):
        schema = one_schema(content, source, trace)
        is_binary = (schema.get("type"), schema.get("format")) == ("string", "binary")
        if source.profile == "oas" and is_binary and schema.keys() <= _OF_FILE:  # ``type: file`` in v3
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
    for name, written in within(node, "headers").items():
        trace.path += ("headers", name)
        header = convert_header(written, source, trace)
        if header is not None:
            headers[name] = header
        del trace.path[-2:]
    if headers:
        result["headers"] = headers
    return result, list(content)
