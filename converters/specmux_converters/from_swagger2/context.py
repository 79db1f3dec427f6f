"""Convert the paths and shared objects of one source into Parts on demand."""

# Theory of operation
#
# A Swagger 2.0 document of an apiserver is converted once and divided into many OpenAPI v3 documents, which
# share most of their schemas. So the unit is a part: one path, or one component, as the bytes of its
# canonical JSON with the names of the components that it refers to. A part is made when the first document
# needs it, kept, and joined into each that needs it by reference, without parsing or encoding it again.
#
# ``needed`` is the closure of references from a document's paths. It makes parts level by level and in
# sorted order: of a document with several errors, every replica then reports the same one.
#
# A shared parameter or response of Swagger has no fixed kind in v3: a body parameter becomes a request
# body, which has media types, and the Kubernetes profile expands shared objects at each use, as apiservers
# publish them. The kind is therefore decided here, where the whole source is known, and not where the
# reference stands.
#
# Losses belong to the part, not to the run, since a part may end up in several documents or in none. A
# ``Trace`` carries the path of the node being converted, the references and losses found below it, and the
# budget. The budget counts output bytes and followed references over all parts, because a document of a
# kilobyte can refer to itself in ways that expand without end.
#
# What must never happen: a result that depends on which document was asked for first; an input that costs
# more than its budget; something dropped without a loss.

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from functools import partial
from typing import Any, Final, TypeAlias

from specmux_converters.document import canonical
from specmux_converters.from_swagger2.paths.bodies import (
    FormField,
    convert_body,
    convert_form,
    convert_response,
)
from specmux_converters.from_swagger2.paths.operations import convert_path_item
from specmux_converters.from_swagger2.paths.parameters import LOCATIONS, convert_parameter
from specmux_converters.from_swagger2.paths.references import ReferenceTarget, find, location_of
from specmux_converters.from_swagger2.reading.component_names import are_allowed, is_allowed, reason_of_rename
from specmux_converters.from_swagger2.reading.source import SwaggerSource
from specmux_converters.from_swagger2.reading.trace import OutputBudget, Trace
from specmux_converters.from_swagger2.schemas import convert_schema
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.losses import tokens_of
from specmux_converters.outlines import DocumentPart

_STEP_COST: Final = 64
"""Bytes of the budget for following a reference: a long chain is followed from each of its links."""


def convert_definition(name: str, node: Any, source: SwaggerSource, trace: Trace) -> dict[str, Any]:
    converted = convert_component(node, source, trace)
    if source.profile == "kubernetes" and converted.get("type") == "string":
        alternatives = _alternatives(name, converted)
        if alternatives:
            return {**{k: v for k, v in converted.items() if k != "type"}, "oneOf": alternatives}
    return converted


def convert_component(node: Any, source: SwaggerSource, trace: Trace) -> dict[str, Any]:
    if isinstance(node, dict) and len(node) == 1 and _is_endless(node.get("$ref"), source, trace):
        trace.lose("circular $ref", "leads back to itself; kept as x-unresolved-ref", "$ref")
        return {"x-unresolved-ref": node["$ref"]}
    return convert_schema(node, source, trace)


def _is_endless(ref: Any, source: SwaggerSource, trace: Trace) -> bool:
    """Whether a schema that is only this reference leads back to itself through others like it: resolving it
    would never end."""
    seen: set[str] = set()
    while isinstance(ref, str) and ref.startswith("#") and ref not in seen:
        tokens = tokens_of(ref)
        if tokens == trace.path:
            return True
        trace.foreign.append(ref)
        trace.spend(_STEP_COST)
        seen.add(ref)
        target = source.resolve(tokens)
        ref = target.get("$ref") if isinstance(target, dict) and len(target) == 1 else None
    return False


def _alternatives(name: str, node: dict[str, Any]) -> list[dict[str, str]] | None:
    """The schema that Kubernetes publishes for types with OpenAPIV3OneOfTypes (kube-openapi pkg/common)."""
    if node.get("format") == "int-or-string":
        return [{"type": "integer"}, {"type": "string"}]
    if name.endswith(".api.resource.Quantity"):
        return [{"type": "string"}, {"type": "number"}]
    return None


def parameter_kind(node: Any, source: SwaggerSource, trace: Trace) -> str | None:
    """The component kind of a shared parameter; None if it cannot be kept."""
    found = find(node, "parameters", source, trace)
    if not isinstance(found, ReferenceTarget):
        return "parameters" if "$ref" in found else None
    location = location_of(found)
    if location in ("body", "formData"):
        return "requestBodies"
    if location in LOCATIONS:
        return "parameters"
    found.trace.lose("parameter", "no such location in Swagger 2.0; left out", "in")
    return None


def convert_shared_parameter(node: Any, source: SwaggerSource, trace: Trace) -> dict[str, Any]:
    """A parameter or, if v3 expresses it as a body, a request body with the document's media types."""
    found = find(node, "parameters", source, trace)
    if not isinstance(found, ReferenceTarget):
        return found
    location = location_of(found)
    if location == "body":
        return convert_body(found.node, source.consumes, source, found.trace)
    if location == "formData":
        return convert_form([FormField(found.node, found.trace)], source.consumes, source)
    return convert_parameter(found.node, source, found.trace)


def convert_shared_response(node: Any, source: SwaggerSource, trace: Trace) -> dict[str, Any]:
    found = find(node, "responses", source, trace)
    if not isinstance(found, ReferenceTarget):
        return found if "$ref" in found else {"description": "", **found}
    return convert_response(found.node, source.produces, source, found.trace)


_SECTIONS: Final = {
    "schemas": "definitions",
    "parameters": "parameters",
    "requestBodies": "parameters",
    "responses": "responses",
}
"""A component kind -> its section in Swagger 2.0."""

Make: TypeAlias = Callable[[Any, SwaggerSource, Trace], dict[str, Any]]


@dataclass(slots=True)
class Context:
    """``components``: those made so far, by name ("schemas/Pod"). ``written``: the original names of renamed
    ones."""

    source: SwaggerSource
    budget: OutputBudget
    components: dict[str, DocumentPart] = field(default_factory=dict)
    written: dict[str, str] = field(default_factory=dict)
    are_names_allowed: bool = False

    def __post_init__(self) -> None:
        source = self.source
        names = source.names
        for kind, changed in (
            ("schemas", names.definitions),
            ("parameters", names.parameters),
            ("requestBodies", names.parameters),
            ("responses", names.responses),
        ):
            self.written |= {f"{kind}/{new}": name for name, new in changed.items()}
        self.are_names_allowed = are_allowed([*source.definitions, *source.parameters, *source.responses])

    def path(self, path: str, written: str, node: Any) -> DocumentPart:
        """``written``: the key in the input."""
        make = partial(convert_path_item, path)
        return self._make_part(["paths", written], node, make)

    def component(self, name: str) -> DocumentPart:
        part = self.components.get(name)
        if part is None:
            kind, _, key = name.partition("/")
            written = self.written.get(name, key)
            part = self._component(kind, written)
            if not ((self.are_names_allowed and written) or is_allowed(written)):
                reason = reason_of_rename(key if name in self.written else None)
                trace = Trace.begin([_SECTIONS[kind], written], self.budget)
                trace.note("component name", reason)
                part = replace(part, losses=(*part.losses, *trace.losses))
            self.components[name] = part
        return part

    def list_needed(self, waiting: set[str]) -> list[str]:
        """The named components and those that they refer to, directly or indirectly, sorted."""
        made = self.components
        found: set[str] = set()
        while waiting:
            # of several errors, report the same one in every process
            for name in sorted(waiting.difference(made)):
                self.component(name)
            found |= waiting
            waiting = set().union(*[made[name].refs for name in waiting]) - found
        return sorted(found)

    def shared_names(self, trace: Trace) -> set[str]:
        """Every shared object, whether or not a path needs it. Called after the paths are converted."""
        source = self.source
        new = source.names
        names = {f"schemas/{new.definitions.get(name, name)}" for name in source.definitions}
        if source.profile == "kubernetes":
            self._lose_unused(trace)
            return names
        for name in _names_of_shared("responses", source.responses, trace):
            names.add(f"responses/{new.responses.get(name, name)}")
        for name in _names_of_shared("parameters", source.parameters, trace):
            kind = parameter_kind(source.parameters[name], source, trace.at(["parameters", name]))
            if kind is not None:
                names.add(f"{kind}/{new.parameters.get(name, name)}")
        return names

    def _lose_unused(self, trace: Trace) -> None:
        """Report shared objects that are expanded at each reference, and never referenced."""
        source = self.source
        followed = {tuple(tokens_of(ref)) for ref in source.sizes}
        for kind, shared in (("parameters", source.parameters), ("responses", source.responses)):
            for name in shared:
                if (kind, name) not in followed:
                    trace.note("shared object", "nothing refers to it; left out", kind, name)

    def _component(self, kind: str, name: str) -> DocumentPart:
        source = self.source
        if kind != "schemas":
            shared = source.responses if kind == "responses" else source.parameters
            convert = convert_shared_response if kind == "responses" else convert_shared_parameter
            return self._make_part([_SECTIONS[kind], name], shared[name], convert)
        if name in source.definitions:
            return self._make_part(
                ["definitions", name], source.definitions[name], partial(convert_definition, name)
            )
        tokens, node = source.hoisted[name]
        self.budget.spend(len(canonical(node, *tokens)), *tokens)
        return self._make_part([*tokens], node, convert_component)

    def _make_part(self, path: list[str | int], node: Any, make: Make) -> DocumentPart:
        trace = Trace.begin(path, self.budget)
        made = make(node, self.source, trace)
        return DocumentPart.of(made, *path, refs=frozenset(trace.refs), losses=tuple(trace.losses))


def _names_of_shared(kind: str, shared: Mapping[str, Any], trace: Trace) -> list[str]:
    """The names of shared objects that are not null."""
    for name, node in shared.items():
        if node is None:
            trace.note("null", "stands for nothing; left out", kind, name)
    return [name for name, node in shared.items() if node is not None]
