"""The components of one document, each converted once per mode and shared by everything that refers to it.

The size of schemas with components inlined is computed without building them: nested references multiply, and
a document of kilobytes could demand gigabytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple, TypeAlias

import orjson

from specmux_converters.errors import LimitExceeded
from specmux_converters.json_schema.forms import Mode, Schema
from specmux_converters.json_values import array, mapping
from specmux_converters.references import component_of

MOST_BYTES: Final = 4 * 1024 * 1024
"""Bytes of the largest schema with inlined components; a larger one has ``definitions``."""

MOST_DEPTH: Final = 200
"""Levels of the deepest such schema. JSON parsers refuse a few hundred."""

_ONE: Final = ("items", "additionalProperties", "not")
_LISTS: Final = ("allOf", "anyOf", "oneOf")


class Extent(NamedTuple):
    bytes: int
    depth: int

    @property
    def is_too_large(self) -> bool:
        return self.bytes > MOST_BYTES or self.depth > MOST_DEPTH


_CUT: Final = Extent(64, 2)
"""The extent of a reference that is kept."""


class ReferenceGraph:
    """The references of one document's schemas."""

    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self._schemas = schemas
        self._extents: dict[str, Extent] = {}
        self._targets: dict[str, list[tuple[str, int]]] = {}

    def targets(self, name: str) -> list[tuple[str, int]]:
        """The components that one refers to, once per reference, with the depth of the reference."""
        if name not in self._targets:
            self._targets[name] = list(_targets(self._schemas.get(name), 0))
        return self._targets[name]

    @cached_property
    def recursive(self) -> frozenset[str]:
        """Components on a cycle of references, or between two cycles."""
        ahead = {name: {target for target, _ in self.targets(name)} for name in self._schemas}
        behind: dict[str, set[str]] = {name: set() for name in ahead}
        for name, targets in ahead.items():
            for target in targets & behind.keys():
                behind[target].add(name)
        return frozenset(_prune_names(_prune_names(set(ahead), behind, ahead), ahead, behind))

    def extent(self, name: str) -> Extent:
        """With everything below it inlined, except recursive components. Raises LimitExceeded for a chain of
        references that is too long."""
        try:
            return self._extent(name)
        except RecursionError:
            raise LimitExceeded(f"references nested too deeply below {name}") from None

    def _extent(self, name: str) -> Extent:
        if name not in self._extents:
            size, deepest = len(orjson.dumps(self._schemas.get(name))), 8
            for target, depth in self.targets(name):
                below = _CUT if target in self.recursive else self._extent(target)
                size += below.bytes
                deepest = max(deepest, depth + below.depth)
            self._extents[name] = Extent(size, deepest)
        return self._extents[name]


def _prune_names(names: set[str], exits: Mapping[str, set[str]], entries: Mapping[str, set[str]]) -> set[str]:
    """Repeatedly remove names without an incoming edge from the remaining ones."""
    left = {name: len(entries[name] & names) for name in names}
    free = [name for name, count in left.items() if not count]
    while free:
        name = free.pop()
        del left[name]
        for other in exits[name] & left.keys():
            left[other] -= 1
            if not left[other]:
                free.append(other)
    return set(left)


def _targets(schema: Any, depth: int) -> Iterator[tuple[str, int]]:
    if not isinstance(schema, dict):
        return
    name = component_of(schema)
    if name is not None:
        yield name, depth
        return
    for child in children(schema):
        yield from _targets(child, depth + 2)


def children(schema: Mapping[str, Any]) -> Iterator[Any]:
    """The schemas that stand in one."""
    yield from mapping(schema.get("properties")).values()
    for key in _ONE:
        if key in schema:
            yield schema[key]
    for key in _LISTS:
        yield from array(schema.get(key))


Definition: TypeAlias = tuple[str, Mode]
Convert: TypeAlias = Callable[[str, Mode], Schema]

_PREFIX: Final = "#/definitions/"

PRUNED: Final = "pruned"
FIXED: Final[Mapping[str, Schema]] = {
    PRUNED: {"maxProperties": 0, "items": {"$ref": f"{_PREFIX}{PRUNED}"}},
}
"""Definitions other than components. Names of a cluster's components always contain a dot."""


class Components:
    """``convert`` converts one component, and requests others through ``reference``.

    With ``is_named`` every reference is kept, otherwise only circular ones. ``base``: the mode of top-level
    schemas.
    """

    def __init__(
        self,
        schemas: Mapping[str, Any],
        graph: ReferenceGraph,
        base: Mode,
        convert: Convert,
        *,
        is_named: bool,
    ) -> None:
        self.schemas = schemas
        self._graph = graph
        self._base = base
        self._convert = convert
        self._is_named = is_named
        self._made: dict[Definition, tuple[Schema, frozenset[Definition]]] = {}
        self._used: set[Definition] = set()

    def reference(self, name: str, mode: Mode) -> Schema:
        """The schema in place of a reference; an empty one for a dangling reference."""
        if not isinstance(self.schemas.get(name), dict):
            return {}
        if self._is_named or name in self._graph.recursive:
            return self._definition(name, mode)
        return self.component(name, mode)

    def refer_to_pruned(self) -> Schema:
        """A reference to a schema under which no object has fields."""
        return self._definition(PRUNED, self._base)

    def component(self, name: str, mode: Mode) -> Schema:
        """Raises LimitExceeded if references are nested too deeply."""
        made = self._made.get((name, mode))
        if made is None:
            outer, self._used = self._used, set()
            try:
                made = self._made[name, mode] = self._convert(name, mode), frozenset(self._used)
            except RecursionError:
                raise LimitExceeded(f"nested too deeply: {name}") from None
            finally:
                self._used = outer
        self._used |= made[1]
        return made[0]

    def definitions(self) -> dict[str, Schema]:
        """The components referred to since the last call, with those that they refer to, by name."""
        found: dict[str, Schema] = {}
        waiting = self._taken_definitions()
        while waiting:
            name, mode = waiting.pop()
            key = self._definition_name(name, mode)
            if key not in found:
                found[key] = self.component(name, mode) if name in self.schemas else FIXED[name]
                waiting |= self._taken_definitions()
        return dict(sorted(found.items()))

    def _definition(self, name: str, mode: Mode) -> Schema:
        self._used.add((name, mode))
        return {"$ref": _PREFIX + pointer_token(self._definition_name(name, mode))}

    def _definition_name(self, name: str, mode: Mode) -> str:
        """The component's own name, with a suffix if the mode differs from the top level's."""
        open_word = [] if mode.is_strict == self._base.is_strict else ["open"]
        return ".".join([name, *open_word, *(() if mode.requires == self._base.requires else ("optional",))])

    def _taken_definitions(self) -> set[Definition]:
        taken, self._used = self._used, set()
        return taken


def pointer_token(name: str) -> str:
    """A name in the fragment of a reference (RFC 6901, section 6)."""
    return name.replace("~", "~0").replace("/", "~1").replace("%", "%25")
