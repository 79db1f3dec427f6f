"""Path items and operations: where parameters become parameters or a request body."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from specmux_converters.swagger2.bodies import FormField, convert_body, convert_form
from specmux_converters.swagger2.fields import ARRAY, FLAG, OBJECT, TEXT, kept, texts
from specmux_converters.swagger2.parameters import LOCATIONS, convert_parameter
from specmux_converters.swagger2.references import Found, find, located
from specmux_converters.swagger2.responses import convert_response
from specmux_converters.swagger2.servers import operation_servers
from specmux_converters.swagger2.source import Source, media_types, object_at
from specmux_converters.swagger2.trace import Trace

METHODS: Final = frozenset({"get", "put", "post", "delete", "options", "head", "patch"})

_COPIED: Final = {
    **dict.fromkeys(("summary", "description", "operationId"), TEXT),
    "tags": ARRAY,
    "externalDocs": OBJECT,
    "deprecated": FLAG,
    "security": ARRAY,
}
_MOVED: Final = frozenset({"parameters", "responses", "consumes", "produces", "schemes"})
_KNOWN: Final = _COPIED.keys() | _MOVED
_PATH_ITEM_FIELDS: Final = METHODS | {"$ref", "parameters"}
_STATUS: Final = frozenset({"default", *(f"{code}" for code in range(100, 600))})


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a path item or operation, apart by what becomes of them."""

    plain: tuple[dict[str, Any], ...] = ()
    body: Found | None = None
    form: tuple[FormField, ...] = ()

    @property
    def has_body(self) -> bool:
        return self.body is not None or bool(self.form)


def convert_path_item(node: Any, source: Source, trace: Trace) -> dict[str, Any]:
    if not isinstance(node, dict):
        trace.refuse("a path item object is required")
    result: dict[str, Any] = {}
    if "$ref" in node:
        found = find(node, source, trace)
        result = _path_item(found.node, source, found.trace) if isinstance(found, Found) else found
    return {**result, **_path_item(node, source, trace)}


def _path_item(node: dict[str, Any], source: Source, trace: Trace) -> dict[str, Any]:
    """What the item itself says, beside its ``$ref``."""
    shared = _parameters(node, source, trace)
    result: dict[str, Any] = {"parameters": list(shared.plain)} if shared.plain else {}
    for key, value in node.items():
        if key in METHODS:
            trace.path.append(key)
            result[key] = _operation(value, shared, source, trace)
            trace.path.pop()
        elif key[:2] == "x-":
            result[key] = value
    trace.keep_unknown(node, _PATH_ITEM_FIELDS, result)
    return result


def _operation(node: Any, shared: Parameters, source: Source, trace: Trace) -> dict[str, Any]:
    if not isinstance(node, dict):
        trace.refuse("an operation object is required")
    result = kept(node, _COPIED, trace)
    texts(result, "tags", trace)
    own = _parameters(node, source, trace)
    if own.plain:
        result["parameters"] = list(own.plain)
    body = own if own.has_body else shared
    if body.has_body:
        consumes = media_types(node, "consumes", trace)
        result["requestBody"] = _body(body, source.consumes if consumes is None else consumes, source)
    produces = media_types(node, "produces", trace)
    result["responses"] = _responses(node, source.produces if produces is None else produces, source, trace)
    result.update(operation_servers(node, source, trace))
    trace.keep_unknown(node, _KNOWN, result)
    return result


def _parameters(owner: dict[str, Any], source: Source, trace: Trace) -> Parameters:
    nodes = owner.get("parameters")
    if nodes is None:
        return Parameters()
    if not isinstance(nodes, list):
        trace.refuse("an array of parameters is required", "parameters")
    plain: list[dict[str, Any]] = []
    form: list[FormField] = []
    body = None
    trace.path.append("parameters")
    for index, written in enumerate(nodes):
        trace.path.append(index)
        read = _parameter(written, source, trace)
        trace.path.pop()
        if read is None:
            continue
        if not isinstance(read, Found):
            plain.append(read)
        elif read.node["in"] == "body":
            body = read
        else:
            form.append(FormField(read.node, read.trace))
    trace.path.pop()
    return Parameters(tuple(plain), body, tuple(form))


def _parameter(written: Any, source: Source, trace: Trace) -> Found | dict[str, Any] | None:
    """The parameter as v3 has it, one that belongs into a body, or None for one that cannot be kept."""
    ref = written.get("$ref") if isinstance(written, dict) else None
    if isinstance(ref, str) and ref in source.written_out:
        plain, notes, size = source.written_out[ref]
        trace.take(notes)
        trace.spend(size)
        return plain
    found = find(written, source, trace)
    if not isinstance(found, Found):
        return found if "$ref" in found else None
    location = located(found)
    if location in LOCATIONS:
        return _plain(found, ref, source, trace)
    if location in ("body", "formData"):
        return Found(found.node, found.trace.at([*found.trace.path]), found.shared)
    found.trace.lose("parameter", "no such location in Swagger 2.0; left out", "in")
    return None


def _plain(found: Found, ref: Any, source: Source, trace: Trace) -> dict[str, Any]:
    """A shared one is converted once and, where it must be written out, the same dict every time."""
    if found.shared is not None and source.profile == "oas":
        return _component("parameters", found)
    if ref is None or found.trace.foreign:
        return convert_parameter(found.node, source, found.trace)
    notes = Trace(found.trace.path, budget=trace.budget)
    plain = convert_parameter(found.node, source, notes)
    if not notes.foreign:
        source.written_out[ref] = plain, notes, source.size_of(ref, found.node)
    trace.take(notes)
    return plain


def _component(kind: str, found: Found) -> dict[str, Any]:
    name = found.shared or ""
    found.trace.refs.add(f"{kind}/{name}")
    return {"$ref": f"#/components/{kind}/{name.replace('~', '~0').replace('/', '~1')}"}


def _body(parameters: Parameters, accepted: Sequence[str], source: Source) -> dict[str, Any]:
    found = parameters.body
    if found is None:
        return convert_form(parameters.form, accepted, source)
    if found.shared is not None and source.profile == "oas" and tuple(accepted) == source.consumes:
        return _component("requestBodies", found)
    return convert_body(found.node, accepted, source, found.trace)


def _responses(node: dict[str, Any], offered: Sequence[str], source: Source, trace: Trace) -> dict[str, Any]:
    responses = object_at(node, "responses", trace)
    result: dict[str, Any] = {}
    trace.path.append("responses")
    for status, written in responses.items():
        if status[:2] == "x-":
            result[status] = written
        elif status in _STATUS:
            trace.path.append(status)
            result[status] = _response(written, offered, source, trace)
            trace.path.pop()
    if _STATUS.isdisjoint(result):
        trace.lose("operation without responses", "OpenAPI 3.0 requires one; an empty default is added")
        result["default"] = {"description": ""}
    trace.keep_unknown(responses, _STATUS, result)
    trace.path.pop()
    return result


def _response(written: Any, offered: Sequence[str], source: Source, trace: Trace) -> dict[str, Any]:
    if isinstance(written, dict) and "$ref" not in written:
        return convert_response(written, offered, source, trace)
    found = find(written, source, trace)
    if not isinstance(found, Found):
        return found if "$ref" in found else {"description": "", **found}
    is_same = "schema" not in found.node or tuple(offered) == source.produces
    if found.shared is not None and source.profile == "oas" and is_same:
        return _component("responses", found)
    return convert_response(found.node, offered, source, found.trace)
