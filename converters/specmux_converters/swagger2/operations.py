"""Path items and operations: where parameters become parameters or a request body."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from specmux_converters.losses import Trace
from specmux_converters.swagger2.bodies import body_content, form_content
from specmux_converters.swagger2.parameters import LOCATIONS, convert_parameter
from specmux_converters.swagger2.responses import convert_response
from specmux_converters.swagger2.servers import operation_servers
from specmux_converters.swagger2.source import Source, media_types, object_at

METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch")

_OPERATION_KEYS: Final = frozenset(
    {"tags", "summary", "description", "externalDocs", "operationId", "deprecated", "security"}
)
_MOVED: Final = frozenset({"parameters", "responses", "consumes", "produces", "schemes"})


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a path item or operation, apart by what becomes of them."""

    plain: tuple[dict[str, Any], ...] = ()
    body: tuple[dict[str, Any], Trace] | None = None
    form: tuple[tuple[dict[str, Any], Trace], ...] = ()

    @property
    def has_body(self) -> bool:
        return self.body is not None or bool(self.form)


def convert_path_item(node: Any, source: Source, trace: Trace) -> dict[str, Any]:
    if not isinstance(node, dict):
        trace.refuse("a path item object is required")
    result: dict[str, Any] = {}
    shared = _parameters(node, source, trace)
    for key, value in node.items():
        if key in METHODS:
            trace.path.append(key)
            result[key] = _operation(value, shared, source, trace)
            trace.path.pop()
        elif key == "$ref":
            trace.lose("path item $ref", "never fetched; kept as it is", key)
            result[key] = value
        elif key[:2] == "x-":
            result[key] = value
        elif key != "parameters":
            trace.lose(f"path item field {key}", "OpenAPI 3.0 has no such field here", key)
    if shared.plain:
        result["parameters"] = list(shared.plain)
    return result


def _operation(node: Any, shared: Parameters, source: Source, trace: Trace) -> dict[str, Any]:
    if not isinstance(node, dict):
        trace.refuse("an operation object is required")
    result = {key: value for key, value in node.items() if key in _OPERATION_KEYS or key[:2] == "x-"}
    own = _parameters(node, source, trace)
    if own.plain:
        result["parameters"] = list(own.plain)
    body = own if own.has_body else shared
    consumes = media_types(node.get("consumes"), "consumes", trace)
    if body.has_body:
        accepted = source.consumes if consumes is None else consumes
        result["requestBody"] = _request_body(body, accepted, source)
    produces = media_types(node.get("produces"), "produces", trace)
    result["responses"] = _responses(node, source.produces if produces is None else produces, source, trace)
    result.update(operation_servers(node, source, trace))
    for key in node.keys() - _OPERATION_KEYS - _MOVED:
        if key[:2] != "x-":
            trace.lose(f"operation field {key}", "OpenAPI 3.0 has no such field here", key)
    return result


def _request_body(parameters: Parameters, accepted: Sequence[str], source: Source) -> dict[str, Any]:
    if parameters.body is not None:
        node, trace = parameters.body
        return body_content(node, accepted, source, trace)
    return form_content(parameters.form, accepted, source)


def _parameters(owner: dict[str, Any], source: Source, trace: Trace) -> Parameters:
    nodes = owner.get("parameters")
    if nodes is None:
        return Parameters()
    if not isinstance(nodes, list):
        trace.refuse("an array of parameters is required", "parameters")
    plain: list[dict[str, Any]] = []
    form: list[tuple[dict[str, Any], Trace]] = []
    body = None
    for index, written in enumerate(nodes):
        here = Trace([*trace.path, "parameters", index], trace.losses, trace.refs)
        node = _resolved(written, source, here)
        if node is None:
            plain.append(written)
            continue
        location = node.get("in")
        if not isinstance(node.get("name"), str) or not isinstance(location, str):
            here.refuse('a parameter needs "name" and "in"')
        if location in LOCATIONS:
            plain.append(convert_parameter(node, source, here))
        elif location == "body":
            body = (node, here)
        elif location == "formData":
            form.append((node, here))
        else:
            here.lose("parameter location", "no such location in Swagger 2.0; left out", "in")
    return Parameters(tuple(plain), body, tuple(form))


def _resolved(node: Any, source: Source, trace: Trace) -> dict[str, Any] | None:
    """The parameter itself, behind any chain of local references; None for one that stays external."""
    seen = set()
    while isinstance(node, dict) and "$ref" in node:
        ref = node["$ref"]
        if not isinstance(ref, str):
            trace.refuse("a reference must be a string", "$ref")
        if not ref.startswith("#"):
            trace.lose("external $ref", "never fetched; kept as it is", "$ref")
            return None
        if ref in seen:
            trace.refuse("a reference that leads to itself", "$ref")
        seen.add(ref)
        node = source.resolve(ref)
        if node is None:
            trace.refuse("a reference to nothing", "$ref")
    if not isinstance(node, dict):
        trace.refuse("a parameter object is required")
    return node


def _responses(node: dict[str, Any], offered: Sequence[str], source: Source, trace: Trace) -> dict[str, Any]:
    result: dict[str, Any] = {}
    trace.path.append("responses")
    for status, written in object_at({"responses": node.get("responses")}, "responses", trace).items():
        if status[:2] == "x-":
            result[status] = written
            continue
        trace.path.append(status)
        response = _resolved(written, source, trace)
        result[status] = written if response is None else convert_response(response, offered, source, trace)
        trace.path.pop()
    if not any(status[:2] != "x-" for status in result):
        trace.lose("operation without responses", "OpenAPI 3.0 requires one; an empty default is added")
        result["default"] = {"description": ""}
    trace.path.pop()
    return result
