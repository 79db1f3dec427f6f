"""The components of one document, each converted once per mode and shared by everything that refers to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from specmux_converters.errors import LimitExceeded
from specmux_converters.json_schema.forms import Mode, Schema
from specmux_converters.json_schema.graph import ReferenceGraph

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

    def pruned(self) -> Schema:
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
                found[key] = FIXED.get(name) or self.component(name, mode)
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
