"""The OpenAPI v3 document as input of the conversion, with its references resolved."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any, Final, TypeVar

import orjson

from specmux_converters.deferred_dataclasses import dataclass
from specmux_converters.document import Document
from specmux_converters.losses import tokens_of
from specmux_converters.references import PREFIX
from specmux_converters.swagger2.reading.source import Profile
from specmux_converters.swagger2.reading.trace import Trace

_SCHEMAS: Final = f"{PREFIX}schemas/"
T = TypeVar("T")

_CHAIN: Final = 50
"""Longest chain of references; longer ones do not occur in practice."""


@dataclass(frozen=True, slots=True)
class OpenAPISource:
    document: Document
    profile: Profile
    memo: dict[tuple[str, bytes], Any] = field(default_factory=dict, repr=False, compare=False)
    """Objects converted without loss, by kind and JSON: a release repeats 47 parameters 6,784 times. Shared
    and read-only."""
    among: dict[tuple[str, bytes], Any] = field(default_factory=dict, repr=False, compare=False)
    """Those without references, which mean the same in every document of one profile."""

    def once(
        self, kind: str, node: Any, trace: Trace, convert: Callable[[Any, OpenAPISource, Trace], T]
    ) -> T:
        """The result of ``convert``, shared by equal nodes."""
        try:
            key = kind, orjson.dumps(node)
        except orjson.JSONEncodeError:
            return convert(node, self, trace)
        memo = self.memo if b'"$ref"' in key[1] else self.among
        if key in memo:
            known: T = memo[key]
            return known
        before = len(trace.losses)
        made = convert(node, self, trace)
        if len(trace.losses) == before:
            memo[key] = made
        return made

    def component(self, node: Any, trace: Trace) -> Any:
        """The object itself, or the target of a local reference; None if there is none. For a parameter,
        body, response, header or example: schemas keep their references."""
        seen = 0
        while isinstance(node, dict) and isinstance(node.get("$ref"), str):
            found = self._at(node["$ref"])
            seen += 1
            if found is None or seen > _CHAIN:
                trace.lose("dangling $ref", "nothing is there; left out", "$ref")
                return None
            trace.spend(64)
            node = found
        return node

    def schema(self, node: Any, trace: Trace) -> Any:
        """As ``component``, where Swagger 2.0 inlines the schema of a value."""
        return self.component(node, trace)

    def _at(self, ref: str) -> Any:
        node: Any = self.document if ref.startswith("#/") else None
        for token in tokens_of(ref):
            node = node.get(token) if isinstance(node, dict) else None
        return node


def written_reference(ref: str) -> str:
    """A reference to a schema in Swagger 2.0."""
    return "#/definitions/" + ref.removeprefix(_SCHEMAS) if ref.startswith(_SCHEMAS) else ref


def items_of(node: Any, key: str) -> dict[str, Any]:
    """The object at ``key``; an empty one if absent."""
    value = node.get(key) if isinstance(node, dict) else None
    return value if isinstance(value, dict) else {}


def list_of(node: Any, key: str) -> list[Any]:
    value = node.get(key) if isinstance(node, dict) else None
    return value if isinstance(value, list) else []
