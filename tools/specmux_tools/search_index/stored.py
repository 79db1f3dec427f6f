"""Serialize an index for storage on disk, to be loaded by the same release of this package.

JSON without compression: lists of numbers are stored as differences, which are small and similar, and
compress to a fortieth.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable
from itertools import accumulate, chain, pairwise
from typing import Any, Final

import orjson

from specmux_converters.resources import GroupVersionKind
from specmux_tools.explanation.kind_names import KindName
from specmux_tools.search_index.graph import DIGEST, FieldGraph, GraphNode, KindRoot
from specmux_tools.search_index.index import FieldIndex, IndexedDocument, Postings

FORM: Final = 2
"""Increases with every change of what is indexed, or of the format."""


def dump(index: FieldIndex) -> bytes:
    graph = index.graph
    documents = {
        key: [held.hash, [[_kind(root.name), root.entry, root.is_list] for root in held.roots]]
        for key, held in index.documents.items()
    }
    return orjson.dumps(
        {
            "form": FORM,
            "documents": documents,
            "nodes": [[node.type, node.summary, _steps(node.entries)] for node in graph.nodes],
            "keys": b64encode(graph.digests or b"".join(graph.node_ids)).decode(),
            "names": graph.names,
            "targets": _steps(graph.targets),
            "words": {word: _steps(found) for word, found in index.names.by_word.items()},
            "described": {word: _steps(found) for word, found in index.descriptions.by_word.items()},
        }
    )


def load(data: bytes) -> FieldIndex | None:
    """None for anything but an index of this release."""
    try:
        value = orjson.loads(data)
        return _index(value) if value["form"] == FORM else None
    except (ValueError, TypeError, KeyError, IndexError, AttributeError):
        return None


def _index(value: dict[str, Any]) -> FieldIndex:
    index = FieldIndex()
    graph = index.graph
    graph.names, graph.targets = value["names"], list(accumulate(value["targets"]))
    graph.nodes = [
        GraphNode(kind, summary, tuple(accumulate(steps)) if steps else ())
        for kind, summary, steps in value["nodes"]
    ]
    graph.digests = b64decode(value["keys"])
    _link(graph)
    index.names = _postings(value["words"], below=len(graph.names))
    index.descriptions = _postings(value["described"], below=len(graph.nodes))
    index.indexed = len(graph.names)
    for key, (hash_, roots) in value["documents"].items():
        index.documents[key] = IndexedDocument(
            hash_, tuple(KindRoot(_name(*each[0]), each[1], each[2]) for each in roots)
        )
    index.places  # noqa: B018  # every number is looked up here, so that what is torn is found now
    return index


def _steps(numbers: Iterable[int]) -> list[int]:
    """The first number, then the difference of each from the previous one."""
    return [after - before for before, after in pairwise(chain((0,), numbers))]


def _postings(value: dict[str, list[int]], *, below: int) -> Postings:
    found = {word: list(accumulate(steps)) for word, steps in value.items()}
    if any(min(numbers) < 0 or max(numbers) >= below for numbers in found.values() if numbers):
        raise ValueError("torn")
    return Postings(found)


def _link(graph: FieldGraph) -> None:
    """Rebuild the reverse edges: from entries to the nodes that contain them, from nodes to the entries that
    point to them."""
    graph.holders = [[] for _ in graph.names]
    graph.leading = [[] for _ in graph.nodes]
    for entry, node in enumerate(graph.targets):
        graph.leading[node].append(entry)
    for number, each in enumerate(graph.nodes):
        for entry in each.entries:
            graph.holders[entry].append(number)
    if (len(graph.digests), len(graph.targets)) != (DIGEST * len(graph.nodes), len(graph.names)) or any(
        min(numbers) < 0 for numbers in (graph.targets, *(each.entries for each in graph.nodes)) if numbers
    ):
        raise ValueError("torn")


def _kind(name: KindName) -> list[Any]:
    kind = name.kind
    return [name.group_version, kind.group, kind.version, kind.kind, name.names, name.short_names]


def _name(key: Any, group: str, version: str, kind: str, names: Any, short_names: Any) -> KindName:
    return KindName(key, GroupVersionKind(group, version, kind), tuple(names), tuple(short_names))
