"""The OpenAPI v3 document as input of the conversion, with its references resolved."""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import field
from typing import Any, Final, TypeVar

import orjson

from specmux_converters.document import Document
from specmux_converters.from_swagger2.reading.source import Profile
from specmux_converters.from_swagger2.reading.trace import Trace
from specmux_converters.json_values import array, mapping
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.losses import tokens_of
from specmux_converters.references import PREFIX

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
    """Parts without references, which mean the same in every document of one profile."""
    used: set[str] = field(default_factory=set, repr=False, compare=False)
    """References that were followed."""

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

    def component(self, node: Any, trace: Trace) -> Document | None:
        """The object itself, or the target of a local reference; None, reported, if there is none. For a
        parameter, body, response or header, and for a schema that Swagger 2.0 inlines."""
        seen = 0
        while isinstance(node, dict) and isinstance(node.get("$ref"), str):
            for key in node.keys() - {"$ref"}:
                trace.note(f"field {key}", "stands beside a $ref, where it is ignored; left out", key)
            found = self._at(node["$ref"])
            seen += 1
            if found is None or seen > _CHAIN:
                trace.lose("dangling $ref", "nothing is there; left out", "$ref")
                return None
            self.used.add(node["$ref"])
            trace.spend(64)
            node = found
        if isinstance(node, dict):
            return node
        trace.lose("value of another type", "an object is required; left out")
        return None

    def _at(self, ref: str) -> Any:
        node: Any = self.document if ref.startswith("#/") else None
        for token in tokens_of(ref):
            node = mapping(node).get(token)
        return node


def write_reference(ref: str) -> str:
    """A reference to a schema in Swagger 2.0."""
    return "#/definitions/" + ref.removeprefix(_SCHEMAS) if ref.startswith(_SCHEMAS) else ref


def lose_others(
    node: Document, known: Container[str], trace: Trace, *, keeps_extensions: bool = True
) -> None:
    """Report the fields that are not ``known`` and say something."""
    for key, value in node.items():
        is_kept = key in known or (keeps_extensions and key.startswith("x-"))
        if not is_kept and value is not None and value is not False and value not in ([], {}):
            trace.lose(f"field {key}", "Swagger 2.0 has no such field here; left out", key)


def list_of(node: Any, key: str) -> list[Any]:
    return array(mapping(node).get(key))
