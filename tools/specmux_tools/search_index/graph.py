"""All fields of all documents, with equal ones stored once, and the place where each is shown.

A node is a schema with everything below it; an entry is a name and a node. Entries point to nodes, nodes to
the entries of their fields. A recursive component ends where it recurs, so the graph has no cycles.

An entry is shown at the cheapest place among all kinds that contain it: stable versions precede betas and
alphas; kinds that most people use precede Kubernetes' core group, which precedes its other groups, and those
precede all others; lists come last. Then the shorter path, the shorter name, alphabetical order. Places are
found from kinds down, cheapest first, which is also the order of rows of equal rank.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from heapq import heappop, heappush
from typing import Final

from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.order import BUILT_IN_GROUPS, maturity
from specmux_tools.explanation.field_path import format_path
from specmux_tools.explanation.kind_names import KindName

DIGEST: Final = 16
_SHOWN: Final = 160
"""Characters of a description shown in a row."""

MOST_NAMED: Final = 40
_MOST_COMPARED: Final = 5000
MOST_USED: Final = (
    ("", "Pod"),
    ("apps", "Deployment"),
    ("", "Service"),
    ("networking.k8s.io", "Ingress"),
    ("", "ConfigMap"),
    ("", "Secret"),
    ("apps", "StatefulSet"),
    ("apps", "DaemonSet"),
    ("batch", "Job"),
    ("batch", "CronJob"),
    ("", "PersistentVolumeClaim"),
    ("autoscaling", "HorizontalPodAutoscaler"),
    ("apiextensions.k8s.io", "CustomResourceDefinition"),
)
"""Groups and kinds that most people look for, the most frequent first."""
_LAST: Final = 9
"""More than any maturity."""

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


def differing_fields(graph: FieldGraph, kind: EntryId, other: EntryId) -> tuple[list[str], list[str]]:
    """Fields of ``other`` that ``kind`` lacks, and vice versa, at most ``MOST_NAMED`` each. A field that
    merely changed is not included."""
    added: list[str] = []
    dropped: list[str] = []
    waiting: list[tuple[tuple[str, ...], EntryId, EntryId]] = [((), kind, other)]
    compared = 0
    while waiting and compared < _MOST_COMPARED:
        path, left, right = waiting.pop()
        if graph.targets[left] == graph.targets[right]:
            continue
        compared += 1
        here, there = _below(graph, left), _below(graph, right)
        added += [format_path((*path, name)) for name in there if name not in here]
        dropped += [format_path((*path, name)) for name in here if name not in there]
        waiting += [((*path, name), here[name], there[name]) for name in here if name in there]
    return sorted(added)[:MOST_NAMED], sorted(dropped)[:MOST_NAMED]


def _below(graph: FieldGraph, entry: EntryId) -> dict[str, EntryId]:
    return {graph.names[each]: each for each in graph.nodes[graph.targets[entry]].entries}


@dataclass(frozen=True, slots=True)
class KindRoot:
    """A kind as an entry without a parent. ``is_list``: its items belong to another kind and are not
    searched."""

    name: KindName
    entry: EntryId
    is_list: bool


@dataclass(frozen=True, slots=True)
class SearchPlaces:
    """Places by entry; -1 for an entry that no document has."""

    parents: Sequence[EntryId]
    """The parent entry; -1 for kinds."""
    positions: Sequence[int]
    """In the order of rows."""
    roots: dict[EntryId, KindRoot]
    """The cheapest kind of each top-level entry."""

    def above(self, entry: EntryId) -> Iterator[EntryId]:
        """The ancestors of an entry at its place, the kind last."""
        parent = self.parents[entry]
        while parent >= 0:
            yield parent
            parent = self.parents[parent]


def places_of(graph: FieldGraph, roots: Iterable[KindRoot]) -> SearchPlaces:
    parents = array("i", [-1]) * len(graph.names)
    positions = array("i", [-1]) * len(graph.names)
    best: dict[EntryId, KindRoot] = {}
    heap: list[tuple[int, int, int, int, str, EntryId, EntryId]] = []
    for root in sorted(roots, key=_cost):
        best.setdefault(root.entry, root)
    for entry, root in best.items():
        kind = root.name.kind
        is_used = (kind.group, kind.kind) in MOST_USED
        group = -1 if is_used else group_class(kind.group)
        cost = (maturity(kind.version) + _LAST * root.is_list, group, 0, len(kind.kind), kind.kind)
        heappush(heap, (*cost, entry, -1))
    nodes, names, targets = graph.nodes, graph.names, graph.targets
    found = 0
    while heap:
        age, group, depth, length, path, entry, parent = heappop(heap)
        if positions[entry] >= 0:
            continue
        positions[entry], parents[entry] = found, parent
        found += 1
        if parent < 0 and best[entry].is_list:
            continue
        for below in nodes[targets[entry]].entries:
            if positions[below] < 0:
                name = names[below]
                heappush(heap, (age, group, depth + 1, length + len(name), f"{path}.{name}", below, entry))
    return SearchPlaces(parents, positions, best)


def group_class(group: str) -> int:
    """0 for the core group, 1 for Kubernetes' other groups, 2 for others."""
    if not group:
        return 0
    return 1 if group in BUILT_IN_GROUPS or group.endswith(".k8s.io") else 2


def _cost(root: KindRoot) -> tuple[int, int, str, str]:
    kind = root.name.kind
    return maturity(kind.version), group_class(kind.group), kind.group, kind.version
