"""Read the schemas of a document into the graph of fields."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final

import orjson

from specmux_converters.document import Document
from specmux_converters.references import schemas_of
from specmux_tools.explanation.layers import (
    Layers,
    Schema,
    component_in,
    innermost,
    layers_of,
    properties_of,
    said_by,
)
from specmux_tools.explanation.text import type_of
from specmux_tools.search_index.graph import DIGEST, EntryId, FieldGraph, NodeId

MOST_DEPTH: Final = 64
_STRUCTURE: Final = frozenset(("properties", "items", "additionalProperties", "allOf", "$ref"))


class DocumentReader:
    """Adds the schemas of a document to a graph."""

    def __init__(self, graph: FieldGraph, document: Document) -> None:
        self._graph = graph
        self._document = document
        self._schemas = schemas_of(document)
        self._known: dict[bytes, NodeId] = {}
        """Nodes by the text of a schema without inline fields: within a document equal texts mean the
        same."""
        self._open: set[str] = set()
        """Components being read."""

    def read(self, schema: Schema, depth: int = 0) -> NodeId:
        """The node of a schema."""
        if _STRUCTURE.isdisjoint(schema):
            # Without references it means the same in every document.
            text = orjson.dumps(schema)
            node = self._graph.leaves.get(text)
            if node is None:
                node = self._graph.leaves[_compact(text)] = self._place(schema, depth)
            return node
        if _has_fields_in_place(schema):
            return self._place(schema, depth)
        text = orjson.dumps(schema)
        node = self._known.get(text)
        if node is None:
            node = self._place(schema, depth)
            if not self._is_within_itself(schema):
                self._known[_compact(text)] = node
        return node

    def _is_within_itself(self, schema: Schema) -> bool:
        if not self._open:
            return False
        layers = layers_of(self._schemas, schema)
        inner = innermost(self._schemas, layers)
        return not self._open.isdisjoint(component_in(each) or "" for each in (*layers, *inner))

    def _place(self, schema: Schema, depth: int) -> NodeId:
        layers = layers_of(self._schemas, schema)
        said = said_by(layers)
        described = said.get("description")
        description = described if isinstance(described, str) else ""
        kind = type_of(self._document, schema)
        inner = innermost(self._schemas, layers)
        entries = self._entries(layers, inner, depth) if depth < MOST_DEPTH else ()
        key = blake2b(_own_text(said), digest_size=DIGEST)
        if inner is not layers:
            key.update(_own_text(said_by(inner)))
        key.update(kind.encode("utf-8", "surrogatepass"))
        key.update(array("i", entries).tobytes())
        return self._graph.node(key.digest(), kind, description, entries)

    def _entries(self, layers: Layers, inner: Layers, depth: int) -> tuple[EntryId, ...]:
        properties = properties_of(inner)
        if not properties:
            return ()
        within = {name for each in (*layers, *inner) if (name := component_in(each)) is not None}
        if within & self._open:
            return ()
        self._open |= within
        try:
            return tuple(
                self._graph.entry(name, self.read(schema, depth + 1)) for name, schema in properties.items()
            )
        finally:
            self._open -= within


def _has_fields_in_place(schema: Schema) -> bool:
    """Whether it may have inline fields: a list of lists is not examined."""
    if "properties" in schema:
        return True
    for keyword in ("items", "additionalProperties"):
        inner = schema.get(keyword)
        if isinstance(inner, dict) and not _STRUCTURE.isdisjoint(inner) and "$ref" not in inner:
            return True
    return False


def _compact(text: bytes) -> bytes:
    """A copy of minimal size: orjson's results have spare capacity."""
    return bytes(memoryview(text))


def _own_text(said: Mapping[str, Any]) -> bytes:
    """The schema's own content, without what is below it."""
    if _STRUCTURE.isdisjoint(said):
        return orjson.dumps(said)
    return orjson.dumps({key: value for key, value in said.items() if key not in _STRUCTURE})
