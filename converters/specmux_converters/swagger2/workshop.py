"""Turns the paths and shared objects of one source into Parts, each when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import Any, TypeAlias

from specmux_converters.parts import ConversionMemo, Part
from specmux_converters.swagger2.components import (
    convert_component,
    convert_definition,
    convert_shared_parameter,
    convert_shared_response,
    parameter_kind,
)
from specmux_converters.swagger2.encoding import encode
from specmux_converters.swagger2.operations import convert_path_item
from specmux_converters.swagger2.source import Source, tokens_of
from specmux_converters.swagger2.trace import Budget, Trace

Make: TypeAlias = Callable[[Any, Source, Trace], dict[str, Any]]


@dataclass(slots=True)
class Workshop:
    """``components`` holds what was made so far, by component name ("schemas/Pod")."""

    source: Source
    memo: ConversionMemo | None
    budget: Budget
    components: dict[str, Part] = field(default_factory=dict)
    shared: str = ""
    known: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """A kept Part is good when its text, all shared objects and the names it refers to are the same."""
        if self.memo is None:
            return
        source = self.source
        environment: list[Any] = [
            source.profile,
            source.parameters,
            source.responses,
            source.consumes,
            source.produces,
        ]
        environment += [source.document.get(key) for key in ("host", "basePath")]
        self.shared = sha256(encode(environment)).hexdigest()
        names = [f"schemas/{name}" for name in source.definitions]
        names += [f"{kind}/{name}" for kind in ("parameters", "requestBodies") for name in source.parameters]
        self.known = frozenset(names + [f"responses/{name}" for name in source.responses])

    def path(self, path: str, written: str, node: Any) -> Part:
        """``written`` is the key in the input."""
        make = partial(convert_path_item, path)
        return self._part(["paths", written], node, make, depends_on=self.shared)

    def component(self, name: str) -> Part:
        part = self.components.get(name)
        if part is None:
            part = self.components[name] = self._component(*name.split("/", 1))
        return part

    def needed(self, waiting: set[str]) -> list[str]:
        """The named components and those that they refer to, directly or through others, sorted."""
        made = self.components
        found: set[str] = set()
        while waiting:
            for name in sorted(waiting.difference(made)):  # of several errors the same one in every process
                self.component(name)
            found |= waiting
            waiting = set().union(*[made[name].refs for name in waiting]) - found
        return sorted(found)

    def shared_names(self, trace: Trace) -> set[str]:
        """Every shared object, whether or not a path needs it. Asked for when the paths are made."""
        source = self.source
        names = {f"schemas/{name}" for name in source.definitions}
        if source.profile == "kubernetes":
            self._lose_unused(trace)
            return names
        names |= {f"responses/{name}" for name in _written("responses", source.responses, trace)}
        for name in _written("parameters", source.parameters, trace):
            kind = parameter_kind(source.parameters[name], source, trace.at(["parameters", name]))
            if kind is not None:
                names.add(f"{kind}/{name}")
        return names

    def _lose_unused(self, trace: Trace) -> None:
        """What is written out wherever it is referred to, is nowhere when it never is."""
        source = self.source
        followed = {tuple(tokens_of(ref)) for ref in source.sizes}
        for kind, shared in (("parameters", source.parameters), ("responses", source.responses)):
            for name in shared:
                if (kind, name) not in followed:
                    trace.lose("shared object", "nothing refers to it; left out", kind, name)

    def _component(self, kind: str, name: str) -> Part:
        source = self.source
        if kind != "schemas":
            shared = source.responses if kind == "responses" else source.parameters
            convert = convert_shared_response if kind == "responses" else convert_shared_parameter
            where = "responses" if kind == "responses" else "parameters"
            return self._part([where, name], shared[name], convert, depends_on=self.shared)
        if name in source.definitions:
            return self._part(
                ["definitions", name], source.definitions[name], partial(convert_definition, name)
            )
        tokens, node = source.hoisted[name]
        self.budget.spend(len(encode(node, *tokens)), *tokens)
        return self._part([*tokens], node, convert_component)

    def _part(self, path: list[str | int], node: Any, make: Make, *, depends_on: str | None = None) -> Part:
        if self.memo is None:
            return self._made(node, make, Trace.begin(path, self.budget))
        text = encode(node, *path)
        place = (self.source.profile, depends_on, *path)
        kept = self.memo.get(place, text)
        if kept is not None and kept.refs <= self.known:
            return kept
        trace = Trace.begin(path, self.budget)
        part = self._made(node, make, trace)
        if not trace.foreign:
            self.memo.put(place, text, part)
        return part

    def _made(self, node: Any, make: Make, trace: Trace) -> Part:
        path = tuple(trace.path)
        encoded = encode(make(node, self.source, trace), *path)
        return Part(encoded, frozenset(trace.refs), tuple(trace.losses))


def _written(kind: str, shared: Mapping[str, Any], trace: Trace) -> list[str]:
    """The names of shared objects but for those that are null."""
    for name, node in shared.items():
        if node is None:
            trace.lose("null", "stands for nothing; left out", kind, name)
    return [name for name, node in shared.items() if node is not None]
