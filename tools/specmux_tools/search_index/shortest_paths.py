"""The place where each entry is shown: the cheapest among all kinds that contain it.

Stable versions precede betas and alphas; kinds that most people use precede Kubernetes' core group, which
precedes its other groups, and those precede all others; lists come last. Then the shorter path, the shorter
name, alphabetical order. Places are found from kinds down, cheapest first, which is also the order of rows of
equal rank.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator, Sequence
from heapq import heappop, heappush
from typing import Final

from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.order import BUILT_IN_GROUPS, maturity
from specmux_tools.explanation.kind_names import KindName
from specmux_tools.search_index.graph import EntryId, FieldGraph

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


_LAST: Final = 9
"""More than any maturity."""


def group_class(group: str) -> int:
    """0 for the core group, 1 for Kubernetes' other groups, 2 for others."""
    if not group:
        return 0
    return 1 if group in BUILT_IN_GROUPS or group.endswith(".k8s.io") else 2


def _cost(root: KindRoot) -> tuple[int, int, str, str]:
    kind = root.name.kind
    return maturity(kind.version), group_class(kind.group), kind.group, kind.version
