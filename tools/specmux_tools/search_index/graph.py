"""All fields of all documents, with equal ones stored once.

A node is a schema with everything below it; an entry is a name and a node. Entries point to nodes, nodes to
the entries of their fields. A recursive component ends where it recurs, so the graph has no cycles.
"""

from __future__ import annotations

from dataclasses import field
from typing import Final

from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.explanation.field_path import format_path

DIGEST: Final = 16
_SHOWN: Final = 160
"""Characters of a description shown in a row."""

NodeId = int
EntryId = int


@dataclass(slots=True)
class GraphNode:
    type: str
    summary: str
    """The beginning of its description."""
    entries: tuple[EntryId, ...]


@dataclass(slots=True)
class FieldGraph:
    """Only grows; parts that no document has any more remain, unreachable."""

    nodes: list[GraphNode] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    """The name of each entry."""
    targets: list[NodeId] = field(default_factory=list)
    """The node of each entry."""
    holders: list[list[NodeId]] = field(default_factory=list)
    """The nodes that contain each entry."""
    leading: list[list[EntryId]] = field(default_factory=list)
    """The entries that point to each node."""
    descriptions: dict[NodeId, str] = field(default_factory=dict)
    """Descriptions of nodes that were added since the last call: not indexed yet."""
    leaves: dict[bytes, NodeId] = field(default_factory=dict)
    """Nodes by the text of a schema without fields or references."""
    node_ids: dict[bytes, NodeId] = field(default_factory=dict)
    entry_ids: dict[tuple[str, NodeId], EntryId] = field(default_factory=dict)
    digests: bytes = b""
    """The keys of ``node_ids`` one after the other, in a stored graph to which nothing was added yet."""

    def entry(self, name: str, node: NodeId) -> EntryId:
        if self.digests:
            self._identify()
        known = self.entry_ids.get((name, node))
        if known is None:
            known = self.entry_ids[name, node] = len(self.names)
            self.names.append(name)
            self.targets.append(node)
            self.holders.append([])
            self.leading[node].append(known)
        return known

    def roots_above(self, entry: EntryId, most: int) -> set[EntryId]:
        """All top-level entries above an entry, possibly itself; limited to that many steps."""
        found: set[EntryId] = set()
        seen = {entry}
        waiting = [entry]
        while waiting and len(seen) < most:
            current = waiting.pop()
            if not self.holders[current]:
                found.add(current)
            for node in self.holders[current]:
                for above in self.leading[node]:
                    if above not in seen:
                        seen.add(above)
                        waiting.append(above)
        return found

    def node(self, key: bytes, kind: str, description: str, entries: tuple[EntryId, ...]) -> NodeId:
        """``key``: a digest of its content, of ``DIGEST`` bytes."""
        if self.digests:
            self._identify()
        known = self.node_ids.get(key)
        if known is None:
            known = self.node_ids[key] = len(self.nodes)
            self.nodes.append(GraphNode(kind, summary_of(description), entries))
            self.leading.append([])
            for entry in entries:
                self.holders[entry].append(known)
            if description:
                self.descriptions[known] = description
        return known

    def cut(self, nodes: int, entries: int) -> None:
        """Forget what was added since there were so many, wherever adding was interrupted."""
        del self.nodes[nodes:], self.leading[nodes:]
        del self.names[entries:], self.targets[entries:], self.holders[entries:]
        for lists, most in ((self.holders, nodes), (self.leading, entries)):
            for numbers in lists:
                while numbers and numbers[-1] >= most:
                    numbers.pop()
        self.node_ids = {key: node for key, node in self.node_ids.items() if node < nodes}
        self.leaves = {text: node for text, node in self.leaves.items() if node < nodes}
        self.entry_ids = {pair: entry for pair, entry in self.entry_ids.items() if entry < entries}
        self.descriptions = {node: text for node, text in self.descriptions.items() if node < nodes}

    def _identify(self) -> None:
        starts = range(0, len(self.digests), DIGEST)
        self.node_ids = {self.digests[start : start + DIGEST]: node for node, start in enumerate(starts)}
        pairs = zip(self.names, self.targets, strict=True)
        self.entry_ids = {pair: entry for entry, pair in enumerate(pairs)}
        self.digests = b""


def summary_of(description: str) -> str:
    line = " ".join(description[: 2 * _SHOWN].split())
    sentence, dot, _ = line.partition(". ")
    line = sentence + dot.strip()
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"


MOST_NAMED: Final = 40
_MOST_COMPARED: Final = 5000


@dataclass(slots=True)
class Beside:
    """Paths of fields, at most ``MOST_NAMED`` each."""

    added: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)


def beside(graph: FieldGraph, kind: EntryId, other: EntryId) -> Beside:
    """Fields of ``other`` that ``kind`` lacks, and vice versa. A field that merely changed is not
    included."""
    found = Beside()
    waiting: list[tuple[tuple[str, ...], EntryId, EntryId]] = [((), kind, other)]
    compared = 0
    while waiting and compared < _MOST_COMPARED:
        path, left, right = waiting.pop()
        if graph.targets[left] == graph.targets[right]:
            continue
        compared += 1
        here, there = _below(graph, left), _below(graph, right)
        found.added += [format_path((*path, name)) for name in there if name not in here]
        found.dropped += [format_path((*path, name)) for name in here if name not in there]
        waiting += [((*path, name), here[name], there[name]) for name in here if name in there]
    return Beside(sorted(found.added)[:MOST_NAMED], sorted(found.dropped)[:MOST_NAMED])


def _below(graph: FieldGraph, entry: EntryId) -> dict[str, EntryId]:
    return {graph.names[each]: each for each in graph.nodes[graph.targets[entry]].entries}
