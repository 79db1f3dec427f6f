"""Subjects that a query names exactly: the version of a kind, as in manifests and kubectl (``apps/v1
Deployment``, ``pod/web``), or the full path of a field."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from specmux_converters.group_versions import api_version
from specmux_converters.lazy.patterns import pattern
from specmux_tools.errors import InvalidPath
from specmux_tools.explanation.field_path import parse
from specmux_tools.explanation.similar import similar_to
from specmux_tools.search_index.graph import EntryId
from specmux_tools.search_index.index import FieldIndex
from specmux_tools.search_index.shortest_paths import KindRoot

_QUALIFIED: Final = pattern(r"\s*((?:[a-z0-9.-]+/)?v[0-9]+(?:(?:alpha|beta)[0-9]+)?)(?:/|\s+)(\S.*)")
_OBJECT: Final = pattern(r"\s*([A-Za-z0-9.]+)/\S*\s*")
_LENGTHS: Final = 2
"""Largest difference in length between a word and a suggestion, in characters."""


def version_in(index: FieldIndex, query: str) -> tuple[tuple[KindRoot, ...], str]:
    """The kinds of the version that the query begins with, and the rest of the query; empty if there is no
    such version. Drops an object's name after a kind."""
    qualified = _QUALIFIED.fullmatch(query)
    if qualified is not None:
        roots = tuple(root for root in roots_of(index) if _version(root) == qualified[1])
        if roots:
            return roots, qualified[2]
    named = _OBJECT.fullmatch(query)
    if named is not None and named[1].partition(".")[0].casefold() in index.kinds:
        return (), named[1]
    return (), query


def at_path(
    index: FieldIndex, query: str, group: str | None
) -> list[tuple[KindRoot, tuple[str, ...], EntryId]]:
    """Every kind that has a field at the path, the cheapest first, with its spelling of the path; empty
    unless the query is a path of two or more names."""
    if "." not in query.strip(" ."):
        return []
    try:
        names = tuple(step.name.casefold() for step in parse(query.strip().lstrip(".")))
    except InvalidPath:
        return []
    positions = index.places.positions
    roots = (root for root in roots_of(index) if group in (None, root.name.kind.group) and not root.is_list)
    found = [(root, *end) for root in roots for end in _ends(index, root, names)]
    return sorted(found, key=lambda each: positions[each[0].entry])


def closest_query(index: FieldIndex, words: tuple[str, ...]) -> str:
    """The query with unknown words replaced by the closest known ones; "" if there are none."""
    meant = []
    for word in words:
        if next(index.names.beginning(word), None) or next(index.descriptions.beginning(word), None):
            meant.append(word)
            continue
        names = (*index.kinds, *index.names.by_word)
        similar = similar_to(word, (each for each in names if abs(len(each) - len(word)) <= _LENGTHS))
        if not similar:
            return ""
        meant.append(similar[0])
    return "" if meant == list(words) else " ".join(meant)


def roots_of(index: FieldIndex) -> Iterator[KindRoot]:
    """The kinds of all documents."""
    return (root for held in index.documents.values() for root in held.roots)


def _ends(
    index: FieldIndex, root: KindRoot, names: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], EntryId]]:
    graph, entry, path = index.graph, root.entry, list[str]()
    for name in names:
        below = graph.nodes[graph.targets[entry]].entries
        found = next((each for each in below if graph.names[each].casefold() == name), None)
        if found is None:
            return
        entry = found
        path.append(graph.names[entry])
    yield tuple(path), entry


def _version(root: KindRoot) -> str:
    return api_version(root.name.kind.group, root.name.kind.version)
