"""Fields that differ between two versions of a kind; in the graph, equal fields are one entry."""

from __future__ import annotations

from dataclasses import field
from typing import Final

from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.explanation.field_path import written
from specmux_tools.search_index.graph import EntryId, FieldGraph

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
        found.added += [written((*path, name)) for name in there if name not in here]
        found.dropped += [written((*path, name)) for name in here if name not in there]
        waiting += [((*path, name), here[name], there[name]) for name in here if name in there]
    return Beside(sorted(found.added)[:MOST_NAMED], sorted(found.dropped)[:MOST_NAMED])


def _below(graph: FieldGraph, entry: EntryId) -> dict[str, EntryId]:
    return {graph.names[each]: each for each in graph.nodes[graph.targets[entry]].entries}
