"""References between components, and the size of schemas with components inlined.

Sizes are computed without building schemas: nested references multiply, and a document of kilobytes could
demand gigabytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple

import orjson

from specmux_converters.errors import LimitExceeded
from specmux_converters.references import component_of

MOST_BYTES: Final = 4 * 1024 * 1024
"""Bytes of the largest schema with inlined components; a larger one has ``definitions``."""

MOST_DEPTH: Final = 200
"""Likewise, the deepest nesting. JSON parsers refuse a few hundred levels."""

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
        found = self._targets.get(name)
        if found is None:
            found = self._targets[name] = list(_targets(self._schemas.get(name), 0))
        return found

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
        found = self._extents.get(name)
        if found is None:
            found = self._extents[name] = self._measure_extent(name)
        return found

    def _measure_extent(self, name: str) -> Extent:
        schema = self._schemas.get(name)
        size, deepest = len(orjson.dumps(schema)), 8
        for target, depth in self.targets(name):
            below = _CUT if target in self.recursive else self._extent(target)
            size += below.bytes
            deepest = max(deepest, depth + below.depth)
        return Extent(size, deepest)


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
    properties = schema.get("properties")
    if isinstance(properties, dict):
        yield from properties.values()
    for key in _ONE:
        if key in schema:
            yield schema[key]
    for key in _LISTS:
        listed = schema.get(key)
        if isinstance(listed, list):
            yield from listed
