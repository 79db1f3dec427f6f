"""Path items and operations; their parameters become parameters or a request body. Ids of operations, which
both standards require to be unique, and real documents repeat."""

from __future__ import annotations

import re
from collections.abc import Mapping, Set
from typing import Any, Final, NamedTuple, TypeAlias

import orjson

from specmux_converters.document import canonical
from specmux_converters.errors import cut
from specmux_converters.from_swagger2.paths.bodies import (
    FormField,
    convert_body,
    convert_form,
    convert_response,
    convert_short_response,
)
from specmux_converters.from_swagger2.paths.parameters import LOCATIONS, convert_parameter
from specmux_converters.from_swagger2.paths.path_templates import lose_expressions
from specmux_converters.from_swagger2.paths.references import ReferenceTarget, find, location_of, reference_to
from specmux_converters.from_swagger2.paths.repeats import Json, convert_repeated, encode_result
from specmux_converters.from_swagger2.paths.security import convert_requirements
from specmux_converters.from_swagger2.paths.servers import operation_servers
from specmux_converters.from_swagger2.reading.fields import (
    ARRAY,
    FLAG,
    OBJECT,
    TEXT,
    keep_fields,
    texts,
    without_repeats,
)
from specmux_converters.from_swagger2.reading.source import SwaggerSource, object_at
from specmux_converters.from_swagger2.reading.trace import OutputBudget, Trace
from specmux_converters.outlines import DocumentPart


class Parameters(NamedTuple):
    """The parameters of a path item or operation by what they become. ``plain_json``: those that remain
    parameters."""

    plain: tuple[Json, ...] = ()
    plain_json: orjson.Fragment | None = None
    in_path: frozenset[str] = frozenset()
    body: ReferenceTarget | None = None
    form: tuple[FormField, ...] = ()


_NO_PARAMETERS: Final = Parameters()

Listed: TypeAlias = tuple[Parameters, tuple[tuple[int, ReferenceTarget], ...]]
"""A list of parameters as determined by its text: those that remain parameters, and those of a body by
index."""

Plain: TypeAlias = tuple[Json, str, str]
"""A parameter that remains one, with its name and location."""


def parameters_of(
    template: frozenset[str], owner: dict[str, Any], source: SwaggerSource, trace: Trace
) -> Parameters:
    """The parameters of a path item or operation. ``template``: the names in the path."""
    nodes = owner.get("parameters")
    if nodes is None:
        return _NO_PARAMETERS
    if not isinstance(nodes, list):
        trace.refuse("an array of parameters is required", "parameters")
    parameters, in_body = convert_repeated(_list_operations, nodes, template, source, trace)
    if not in_body:
        return parameters
    form: list[FormField] = []
    body = None
    for index, found in in_body:
        # The list may be a different one with equal text: notes from here on concern this one.
        path = found.trace.path if "$ref" in nodes[index] else [*trace.path, "parameters", index]
        at = trace.at([*path])
        if found.node["in"] != "body":
            form.append(FormField(found.node, at))
        elif body is None:
            body = ReferenceTarget(found.node, at, found.shared)
        else:
            trace.lose("body parameter", "a second one; left out", "parameters", index)
    return Parameters(parameters.plain, parameters.plain_json, parameters.in_path, body, tuple(form))


def _list_operations(
    nodes: list[Any], template: frozenset[str], source: SwaggerSource, trace: Trace
) -> Listed:
    plain: dict[Any, Json] = {}
    in_path: frozenset[str] = frozenset()
    in_body: list[tuple[int, ReferenceTarget]] = []
    trace.path.append("parameters")
    for index, written in enumerate(nodes):
        trace.path.append(index)
        read = _parameter(written, source, trace)
        if isinstance(read, ReferenceTarget):
            in_body.append((index, read))
        elif isinstance(read, tuple):
            node, name, location = read
            if (name, location) in plain:
                trace.lose("parameter", "declared twice; the first one counts")
            elif location != "path":
                plain[name, location] = node
            elif name in template:
                plain[name, location] = node
                in_path = in_path | {name}
            else:
                trace.lose("path parameter", f"{cut(name)} is not in the path; left out")
        elif read is not None:
            plain[index] = read
            in_path = template  # an external definition may declare any of them
        trace.path.pop()
    trace.path.pop()
    listed = tuple(plain.values())
    plain_json = orjson.Fragment(canonical(listed, *trace.path, "parameters")) if listed else None
    return Parameters(listed, plain_json, in_path), tuple(in_body)


def _parameter(
    written: Any, source: SwaggerSource, trace: Trace
) -> ReferenceTarget | Plain | dict[str, Any] | None:
    """The parameter in v3, one that belongs in a body, a reference out of the document, or None if it cannot
    be kept."""
    if written.__class__ is dict and "$ref" not in written:
        name, location = written.get("name"), written.get("in")
        if name.__class__ is str and location.__class__ is str and location in LOCATIONS:
            return convert_repeated(_write_operation, written, None, source, trace), name, location
    ref = written.get("$ref") if isinstance(written, dict) else None
    if isinstance(ref, str) and ref in source.written_out and len(written) == 1:
        plain, notes, size = source.written_out[ref]
        trace.take(notes)
        trace.spend(size)
        return plain
    if written is None:
        trace.note("null", "stands for nothing; left out")
        return None
    found = find(written, "parameters", source, trace)
    if not isinstance(found, ReferenceTarget):
        return found if "$ref" in found else None
    location = location_of(found)
    if location in LOCATIONS:
        return _plain(found, ref, source, trace), found.node["name"], location
    if location in ("body", "formData"):
        return ReferenceTarget(found.node, found.trace.at([*found.trace.path]), found.shared)
    found.trace.lose("parameter", "no such location in Swagger 2.0; left out", "in")
    return None


@encode_result
def _write_operation(node: dict[str, Any], _: None, source: SwaggerSource, trace: Trace) -> dict[str, Any]:
    return convert_parameter(node, source, trace)


def _plain(found: ReferenceTarget, ref: Any, source: SwaggerSource, trace: Trace) -> Json:
    """A shared parameter is converted once; where it is expanded, its text is always the same."""
    if found.shared is not None and source.profile == "oas":
        return reference_to("parameters", found, source)
    if ref is None or found.trace.foreign:
        return convert_parameter(found.node, source, found.trace)
    notes = Trace.begin(found.trace.path, trace.budget)
    plain = _write_operation(found.node, None, source, notes)
    if not notes.foreign:
        source.written_out[ref] = (
            (plain, found.node["name"], found.node["in"]),
            notes,
            source.size_of(ref, found.node),
        )
    trace.take(notes)
    return plain


METHODS: Final = frozenset({"get", "put", "post", "delete", "options", "head", "patch"})

COPIED: Final = {
    **dict.fromkeys(("summary", "description", "operationId"), TEXT),
    "tags": ARRAY,
    "externalDocs": OBJECT,
    "deprecated": FLAG,
    "security": ARRAY,
}
_MOVED: Final = frozenset({"parameters", "responses", "consumes", "produces", "schemes"})
_TEMPLATE: Final = re.compile(r"\{([^{}]+)\}")
_NO_RESPONSE: Final = {"default": {"description": ""}}
_STATUS: Final = frozenset(
    {"default", *(f"{code}" for code in range(100, 600)), *(f"{digit}XX" for digit in range(1, 6))}
)
"""Ranges are not in Swagger 2.0, but are written by authors who know OpenAPI 3.0, where they mean the
same."""

_BODY: Final = encode_result(convert_body)
_RESPONSE: Final = encode_result(convert_response)


def convert_path_item(path: str, node: Any, source: SwaggerSource, trace: Trace) -> dict[str, Any]:
    """``path``: its key in v3. ``trace``: at its key in the input."""
    if node is None:
        trace.note("null", "stands for no path item; an empty one is there")
        return {}
    if not isinstance(node, dict):
        trace.refuse("a path item object is required")
    template = frozenset(_TEMPLATE.findall(path))
    if path != trace.path[-1]:
        lose_expressions(str(trace.path[-1]), trace)
    result: dict[str, Any] = {}
    if "$ref" in node:
        found = find(node, "", source, trace)
        result = (
            _path_item(template, found.node, source, found.trace)
            if isinstance(found, ReferenceTarget)
            else found
        )
    return {**result, **_path_item(template, node, source, trace)}


def _path_item(
    template: frozenset[str], node: dict[str, Any], source: SwaggerSource, trace: Trace
) -> dict[str, Any]:
    """The item's own content, beside its ``$ref``. ``template``: the names in its path."""
    shared = parameters_of(template, node, source, trace)
    result: dict[str, Any] = {"parameters": shared.plain_json} if shared.plain else {}
    for key, value in node.items():
        if key in METHODS:
            if value is None:
                trace.note("null", "stands for nothing; left out", key)
                continue
            trace.path.append(key)
            result[key] = _operation(template, value, shared, source, trace)
            trace.path.pop()
        elif key[:2] == "x-":
            result[key] = value
        elif key != "$ref" and key != "parameters":
            trace.keep_unknown(key, value, result)
    if shared.body is not None or shared.form:
        _lose_overridden(template, node, shared, source, trace)
    return result


def _lose_overridden(
    template: frozenset[str], node: dict[str, Any], shared: Parameters, source: SwaggerSource, trace: Trace
) -> None:
    """Report body parameters of the path that every operation replaces by its own, so that they are lost."""
    owns = [
        parameters_of(template, node[method], source, Trace.begin([*trace.path, method], trace.budget))
        for method in sorted(METHODS & node.keys())
        if node[method] is not None
    ]
    if shared.body is not None and all(own.body is not None or own.form for own in owns):
        shared.body.trace.lose("body parameter", "no operation of the path takes it; left out")
    names = [{field.node["name"] for field in own.form} for own in owns]
    for field in shared.form:
        if all(field.node["name"] in own for own in names):
            field.trace.lose("form field", "no operation of the path takes it; left out")


def _operation(
    template: frozenset[str], node: Any, shared: Parameters, source: SwaggerSource, trace: Trace
) -> dict[str, Any]:
    if not isinstance(node, dict):
        trace.refuse("an operation object is required")
    result = keep_fields(node, COPIED, _MOVED, trace)
    if "tags" in result:
        result["tags"] = _tags(result, trace)
    if "security" in result:
        result["security"] = convert_requirements(result["security"], source, trace)
    own = parameters_of(template, node, source, trace)
    if own.plain:
        result["parameters"] = own.plain_json
    undeclared = template - own.in_path - shared.in_path
    if undeclared:
        result["parameters"] = [*own.plain, *_declare_parameters(undeclared, trace)]
    if own.body or shared.body or own.form or shared.form:
        consumes = source.media_types_at(node, "consumes", trace)
        _report_ignored(trace.path[-1], trace)
        result["requestBody"] = _body(own, shared, source.consumes if consumes is None else consumes, source)
    produces = source.media_types_at(node, "produces", trace)
    result["responses"] = _responses(node, source.produces if produces is None else produces, source, trace)
    result.update(operation_servers(node, source, trace))
    return result


def _report_ignored(method: str | int, trace: Trace) -> None:
    """A body for a method for which HTTP defines no meaning (RFC 7231, 4.3; OpenAPI 3.0.3, 4.7.10.1)."""
    if method == "delete":
        trace.note("body", "OpenAPI 3.0.3 ignores it with DELETE; later editions and Kubernetes read it")
    elif method in ("get", "head"):
        trace.lose("body", f"OpenAPI 3.0.3 ignores it with {str(method).upper()}")


def _tags(node: dict[str, Any], trace: Trace) -> list[str]:
    """Each tag once: validators treat the list as a set."""
    texts(node, "tags", trace)
    tags = node["tags"]
    return tags if len(set(tags)) == len(tags) else without_repeats("tags", tags, trace)


def _declare_parameters(names: Set[str], trace: Trace) -> list[dict[str, Any]]:
    """Parameters for names in a path that are not declared: real servers omit them."""
    for name in sorted(names):
        trace.note("path parameter", f"{{{cut(name)}}} is not declared; added as a string")
    return [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in sorted(names)
    ]


def _body(own: Parameters, shared: Parameters, accepted: tuple[str, ...], source: SwaggerSource) -> Json:
    """The single request body of an operation: its body parameter, or its form fields and those of its
    path."""
    found = own.body if own.body is not None or own.form else shared.body
    form = own.form
    if shared.form:
        names = {field.node["name"] for field in own.form}
        form = (*form, *(field for field in shared.form if field.node["name"] not in names))
    if found is None:
        return convert_form(form, accepted, source)
    for field in form:
        field.trace.lose("form field", "beside a body; left out")
    if found.shared is not None and source.profile == "oas" and accepted == source.consumes:
        return reference_to("requestBodies", found, source)
    return convert_repeated(_BODY, found.node, accepted, source, found.trace)


def _responses(node: dict[str, Any], offered: tuple[str, ...], source: SwaggerSource, trace: Trace) -> Json:
    responses = object_at(node, "responses", trace)
    if not responses:
        _lose_responses(trace, *(("responses",) if "responses" in node else ()))
        return {**_NO_RESPONSE}
    return convert_repeated(_answers, responses, offered, source, trace)


def _lose_responses(trace: Trace, *place: str) -> None:
    trace.note("operation without responses", "OpenAPI 3.0 requires one; an empty default is added", *place)


@encode_result
def _answers(
    responses: dict[str, Any], offered: tuple[str, ...], source: SwaggerSource, trace: Trace
) -> dict[str, Any]:
    result: dict[str, Any] = {}
    trace.path.append("responses")
    for status, written in responses.items():
        if status[:2] == "x-":
            result[status] = written
        elif status in _STATUS:
            trace.path.append(status)
            result[status] = _response(written, offered, source, trace)
            trace.path.pop()
        else:
            trace.keep_unknown(status, written, result)
    if _STATUS.isdisjoint(result):
        _lose_responses(trace)
        result |= _NO_RESPONSE
    trace.path.pop()
    return result


def _response(written: Any, offered: tuple[str, ...], source: SwaggerSource, trace: Trace) -> Json:
    if isinstance(written, dict) and "$ref" not in written:
        short = convert_short_response(written, offered, source, trace)
        return convert_repeated(_RESPONSE, written, offered, source, trace) if short is None else short
    if written is None:
        trace.note("null", "stands for no response; an empty one is there")
        return {"description": ""}
    found = find(written, "responses", source, trace)
    if not isinstance(found, ReferenceTarget):
        return found if "$ref" in found else {"description": "", **found}
    is_same = "schema" not in found.node or offered == source.produces
    if found.shared is not None and source.profile == "oas" and is_same:
        return reference_to("responses", found, source)
    return convert_response(found.node, offered, source, found.trace)


def with_unique_ids(
    parts: dict[str, DocumentPart], nodes: Mapping[str, tuple[str, Any]], budget: OutputBudget
) -> dict[str, DocumentPart]:
    """The parts of one document, by path: of equal ids the first by path and method remains. ``nodes``: the
    keys of the paths in the input, and their values."""
    ids = [found for path in parts for _, found in _ids(nodes[path][1], parts[path])]
    if len(set(ids)) == len(ids):
        return parts
    result = {**parts}
    taken: set[str] = set()
    for path in sorted(parts):
        repeated = []
        for method, found in sorted(_ids(nodes[path][1], parts[path])):
            if found in taken:
                repeated.append((method, found))
            taken.add(found)
        if repeated:
            result[path] = _without_ids(parts[path], repeated, *nodes[path], budget)
    return result


def _ids(node: Any, part: DocumentPart) -> list[tuple[str, str]]:
    """Methods and ids. Those that an item gets by reference are only in its part."""
    if not node:
        return []
    item = part.value() if "$ref" in node else node
    return [
        (method, operation["operationId"])
        for method, operation in item.items()
        if method in METHODS and operation and operation.get("operationId") is not None
    ]


def _without_ids(
    part: DocumentPart, repeated: list[tuple[str, str]], key: str, node: Any, budget: OutputBudget
) -> DocumentPart:
    trace = Trace.begin(["paths", key], budget)
    item = orjson.loads(part.json)  # the parsed value would stay in memory beside it
    for method, found in repeated:
        del item[method]["operationId"]
        place = (method, "operationId") if method in node else ("$ref",)
        trace.lose("operationId", f"{cut(found)} is another operation's; left out", *place)
    return DocumentPart.of(item, *trace.path, refs=part.refs, losses=(*part.losses, *trace.losses))
