"""Convert the paths and shared objects of one source into Parts on demand."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from functools import partial
from typing import Any, Final, TypeAlias

from specmux_converters.from_swagger2.components import (
    convert_component,
    convert_definition,
    convert_shared_parameter,
    convert_shared_response,
    parameter_kind,
)
from specmux_converters.from_swagger2.paths.operations import convert_path_item
from specmux_converters.from_swagger2.reading.component_names import are_allowed, is_allowed, renamed
from specmux_converters.from_swagger2.reading.encoding import encode
from specmux_converters.from_swagger2.reading.source import SwaggerSource
from specmux_converters.from_swagger2.reading.trace import OutputBudget, Trace
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.losses import tokens_of
from specmux_converters.outlines import DocumentPart

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
        for kind, changed in _kinds(names.definitions, names.parameters, names.responses):
            self.written |= {f"{kind}/{new}": name for name, new in changed.items()}
        self.are_names_allowed = are_allowed([*source.definitions, *source.parameters, *source.responses])

    def path(self, path: str, written: str, node: Any) -> DocumentPart:
        """``written``: the key in the input."""
        make = partial(convert_path_item, path)
        return self._made(["paths", written], node, make)

    def component(self, name: str) -> DocumentPart:
        part = self.components.get(name)
        if part is None:
            kind, _, key = name.partition("/")
            written = self.written.get(name, key)
            part = self._component(kind, written)
            if not ((self.are_names_allowed and written) or is_allowed(written)):
                reason = renamed(key if name in self.written else None)
                trace = Trace.begin([_SECTIONS[kind], written], self.budget)
                trace.note("component name", reason)
                part = DocumentPart(part.json, part.refs, (*part.losses, *trace.losses))
            self.components[name] = part
        return part

    def needed(self, waiting: set[str]) -> list[str]:
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
        for name in _written("responses", source.responses, trace):
            names.add(f"responses/{new.responses.get(name, name)}")
        for name in _written("parameters", source.parameters, trace):
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
            return self._made([_SECTIONS[kind], name], shared[name], convert)
        if name in source.definitions:
            return self._made(
                ["definitions", name], source.definitions[name], partial(convert_definition, name)
            )
        tokens, node = source.hoisted[name]
        self.budget.spend(len(encode(node, *tokens)), *tokens)
        return self._made([*tokens], node, convert_component)

    def _made(self, path: list[str | int], node: Any, make: Make) -> DocumentPart:
        trace = Trace.begin(path, self.budget)
        encoded = encode(make(node, self.source, trace), *path)
        return DocumentPart(encoded, frozenset(trace.refs), tuple(trace.losses))


def _kinds(
    definitions: Mapping[str, Any], parameters: Mapping[str, Any], responses: Mapping[str, Any]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The component kinds with their sources."""
    yield "schemas", definitions
    yield "parameters", parameters
    yield "requestBodies", parameters
    yield "responses", responses


def _written(kind: str, shared: Mapping[str, Any], trace: Trace) -> list[str]:
    """The names of shared objects that are not null."""
    for name, node in shared.items():
        if node is None:
            trace.note("null", "stands for nothing; left out", kind, name)
    return [name for name, node in shared.items() if node is not None]
