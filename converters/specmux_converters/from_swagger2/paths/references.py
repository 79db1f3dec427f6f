"""Resolve parameters and responses behind ``$ref``: the shared object, and whether v3 may refer to it too."""

from __future__ import annotations

from typing import Any, NamedTuple

from specmux_converters.from_swagger2.reading.source import SwaggerSource
from specmux_converters.from_swagger2.reading.trace import Trace
from specmux_converters.losses import pointer_to, tokens_of


class ReferenceTarget(NamedTuple):
    """The object, and a trace at the place where it is written.

    ``shared``: its name among the shared objects of its kind, if the first reference names it there.
    """

    node: dict[str, Any]
    trace: Trace
    shared: str | None = None


def find(written: Any, section: str, source: SwaggerSource, trace: Trace) -> ReferenceTarget | dict[str, Any]:
    """Follow local references to the end; returns a placeholder if there is no object. ``section``: of shared
    objects of the kind, "parameters" or "responses", or "" if it cannot be shared.

    A reference out of the document is kept unchanged, a dangling or circular one as an extension, but for a
    parameter; all are reported.
    """
    node, at, shared = written, trace, None
    seen: set[str] = set()
    while isinstance(node, dict) and "$ref" in node:
        if len(node) > 1 and (section or node is not written):
            _lose_siblings(node, at)
        ref = node["$ref"]
        if not isinstance(ref, str):
            at.refuse("a reference must be a string", "$ref")
        if not ref.startswith("#"):
            at.lose("external $ref", "never fetched; kept as it is", "$ref")
            return {"$ref": ref}
        tokens = tokens_of(ref)
        target = None if ref in seen else source.resolve(tokens)
        if target is None:
            at.foreign.append(ref)
            fate = "left out" if section == "parameters" else "kept as x-unresolved-ref"
            at.lose("dangling $ref", f"nothing is there; {fate}", "$ref")
            return {"x-unresolved-ref": ref}
        if len(tokens) == 2 and tokens[0] == section:
            shared = tokens[1] if not seen else shared
        else:
            at.foreign.append(ref)
        at.spend(source.size_of(ref, target))
        seen.add(ref)
        node, at = target, trace.at([*tokens])
    if not isinstance(node, dict):
        at.refuse("an object is required")
    return ReferenceTarget(node, at, shared)


def _lose_siblings(node: dict[str, Any], trace: Trace) -> None:
    """Swagger 2.0 uses JSON Reference, whose section 3 ignores siblings of a reference."""
    for key in node:
        if key != "$ref":
            trace.note(f"field {key}", "stands beside a $ref, where it is ignored; left out", key)


def location_of(found: ReferenceTarget) -> str:
    """The location of a parameter; every parameter has one and a name."""
    location = found.node.get("in")
    if not isinstance(found.node.get("name"), str) or not isinstance(location, str):
        found.trace.refuse('a parameter needs "name" and "in"')
    return location


def reference_to(kind: str, found: ReferenceTarget, source: SwaggerSource) -> dict[str, Any]:
    """The reference to a shared object to which v3 may refer; records it."""
    names = source.names.responses if kind == "responses" else source.names.parameters
    name = names.get(found.shared or "", found.shared or "")
    found.trace.refs.add(f"{kind}/{name}")
    return {"$ref": f"#/components/{kind}{pointer_to(name)}"}
