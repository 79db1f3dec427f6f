"""Which components refer to which, and what they come to when they are written out in place.

Sizes are added up, never built: references to references multiply, and a document of kilobytes could ask for
gigabytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final, NamedTuple

import orjson

from specmux_converters.errors import LimitExceeded
from specmux_converters.references import component_of

MOST_BYTES: Final = 4 * 1024 * 1024
"""Of one schema with its components in place; a larger one has them below ``definitions``."""

MOST_DEPTH: Final = 200
"""Likewise: objects and arrays in each other. JSON readers refuse from some hundreds on."""

_ONE: Final = ("items", "additionalProperties", "not")
_LISTS: Final = ("allOf", "anyOf", "oneOf")


class Extent(NamedTuple):
    bytes: int
    depth: int

    @property
    def is_too_large(self) -> bool:
        return self.bytes > MOST_BYTES or self.depth > MOST_DEPTH


_CUT: Final = Extent(64, 2)
"""Of a reference that stays one."""


class ReferenceGraph:
    """Of one document's schemas."""

    def __init__(self, schemas: Mapping[str, Any]) -> None:
        self._schemas = schemas
        self._extents: dict[str, Extent] = {}
        self._targets: dict[str, list[tuple[str, int]]] = {}

    def targets(self, name: str) -> list[tuple[str, int]]:
        """The components that one refers to, as often as it does, and how deep inside it."""
        found = self._targets.get(name)
        if found is None:
            found = self._targets[name] = list(_targets(self._schemas.get(name), 0))
        return found

    @cached_property
    def recursive(self) -> frozenset[str]:
        """Components that lie on a ring of references, or between two."""
        ahead = {name: {target for target, _ in self.targets(name)} for name in self._schemas}
        behind: dict[str, set[str]] = {name: set() for name in ahead}
        for name, targets in ahead.items():
            for target in targets & behind.keys():
                behind[target].add(name)
        return frozenset(_pruned(_pruned(set(ahead), behind, ahead), ahead, behind))

    def extent(self, name: str) -> Extent:
        """With all below it in place, but for recursive components. Raises LimitExceeded for a chain of
        references too long to follow."""
        try:
            return self._extent(name)
        except RecursionError:
            raise LimitExceeded(f"references nested too deeply below {name}") from None

    def _extent(self, name: str) -> Extent:
        found = self._extents.get(name)
        if found is None:
            found = self._extents[name] = self._measured(name)
        return found

    def _measured(self, name: str) -> Extent:
        schema = self._schemas.get(name)
        size, deepest = len(orjson.dumps(schema)), 8
        for target, depth in self.targets(name):
            below = _CUT if target in self.recursive else self._extent(target)
            size += below.bytes
            deepest = max(deepest, depth + below.depth)
        return Extent(size, deepest)


def _pruned(names: set[str], exits: Mapping[str, set[str]], entries: Mapping[str, set[str]]) -> set[str]:
    """Without those that have no entry from what is left, again and again."""
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
