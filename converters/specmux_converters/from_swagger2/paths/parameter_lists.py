"""Split lists of parameters by what they become: parameters, a request body, form fields."""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeAlias

import orjson

from specmux_converters.errors import cut
from specmux_converters.from_swagger2.paths.bodies import FormField
from specmux_converters.from_swagger2.paths.parameters import LOCATIONS, convert_parameter
from specmux_converters.from_swagger2.paths.references import ReferenceTarget, find, located, reference_to
from specmux_converters.from_swagger2.paths.repeats import Json, encoding, repeated
from specmux_converters.from_swagger2.reading.encoding import encode
from specmux_converters.from_swagger2.reading.source import SwaggerSource
from specmux_converters.from_swagger2.reading.trace import Trace


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
    parameters, in_body = repeated(_listed, nodes, template, source, trace)
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


def _listed(nodes: list[Any], template: frozenset[str], source: SwaggerSource, trace: Trace) -> Listed:
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
    plain_json = orjson.Fragment(encode(listed, *trace.path, "parameters")) if listed else None
    return Parameters(listed, plain_json, in_path), tuple(in_body)


def _parameter(
    written: Any, source: SwaggerSource, trace: Trace
) -> ReferenceTarget | Plain | dict[str, Any] | None:
    """The parameter in v3, one that belongs in a body, a reference out of the document, or None if it cannot
    be kept."""
    if written.__class__ is dict and "$ref" not in written:
        name, location = written.get("name"), written.get("in")
        if name.__class__ is str and location.__class__ is str and location in LOCATIONS:
            return repeated(_written, written, None, source, trace), name, location
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
    location = located(found)
    if location in LOCATIONS:
        return _plain(found, ref, source, trace), found.node["name"], location
    if location in ("body", "formData"):
        return ReferenceTarget(found.node, found.trace.at([*found.trace.path]), found.shared)
    found.trace.lose("parameter", "no such location in Swagger 2.0; left out", "in")
    return None


@encoding
def _written(node: dict[str, Any], _: None, source: SwaggerSource, trace: Trace) -> dict[str, Any]:
    return convert_parameter(node, source, trace)


def _plain(found: ReferenceTarget, ref: Any, source: SwaggerSource, trace: Trace) -> Json:
    """A shared parameter is converted once; where it is expanded, its text is always the same."""
    if found.shared is not None and source.profile == "oas":
        return reference_to("parameters", found, source)
    if ref is None or found.trace.foreign:
        return convert_parameter(found.node, source, found.trace)
    notes = Trace.begin(found.trace.path, trace.budget)
    plain = _written(found.node, None, source, notes)
    if not notes.foreign:
        source.written_out[ref] = (
            (plain, found.node["name"], found.node["in"]),
            notes,
            source.size_of(ref, found.node),
        )
    trace.take(notes)
    return plain
