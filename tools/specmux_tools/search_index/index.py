"""The index of a set of documents: entries by the words in their names and descriptions.

Replacing a document leaves its old entries behind; when more than half are stale, the owner should build a
new index (``is_worn``).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from specmux_converters.document import Document
from specmux_converters.group_versions import GroupVersion
from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.resources import GroupVersionKind
from specmux_tools.explanation.kind_names import KindName, names_in
from specmux_tools.kinds import kinds_of
from specmux_tools.search_index.graph import EntryId, FieldGraph
from specmux_tools.search_index.shortest_paths import KindRoot, SearchPlaces, places_of
from specmux_tools.search_index.words import of_description, of_name

_PLACES_KEPT: Final = 32
"""Number of cached places for single kinds and groups; each holds two numbers per entry."""
_MOST_STEPS: Final = 3000


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """A document in the index."""

    hash: str
    roots: tuple[KindRoot, ...]


class Postings:
    """Entry numbers by word, and words by prefix."""

    def __init__(self, by_word: dict[str, list[int]] | None = None) -> None:
        self.by_word: dict[str, list[int]] = {} if by_word is None else by_word
        self._sorted: list[str] = []

    def add(self, word: str, number: int) -> None:
        self.by_word.setdefault(word, []).append(number)

    def beginning(self, prefix: str) -> Iterator[str]:
        """The words with the prefix."""
        if len(self._sorted) != len(self.by_word):
            self._sorted = sorted(self.by_word)
        for word in self._sorted[bisect_left(self._sorted, prefix) :]:
            if not word.startswith(prefix):
                return
            yield word


class FieldIndex:
    def __init__(self) -> None:
        self.graph = FieldGraph()
        self.documents: dict[GroupVersion, IndexedDocument] = {}
        self.names = Postings()
        """Entries by the words of their names; kinds by all their names."""
        self.descriptions = Postings()
        """Nodes by the words of their descriptions."""
        self.kinds: dict[str, list[KindRoot]] = {}
        """Kinds by every name, in lower case; the cheapest first."""
        self.roots: dict[EntryId, list[KindRoot]] = {}
        self._within: dict[tuple[KindRoot, ...], SearchPlaces] = {}
        self.indexed = 0
        """Number of entries whose names are indexed."""
        self._places: SearchPlaces | None = None

    @property
    def is_worn(self) -> bool:
        """Whether more than half of the entries belong to replaced documents."""
        live = sum(position >= 0 for position in self.places.positions)
        return len(self.graph.names) > 1000 and live < len(self.graph.names) / 2

    @property
    def places(self) -> SearchPlaces:
        if self._places is None:
            roots = [root for held in self.documents.values() for root in held.roots]
            self._places = places_of(self.graph, roots)
            self._name_kinds(roots, self._places)
        return self._places

    def put(self, group_version: GroupVersion, document: Document, *, hash: str) -> None:
        """Adds a document, replacing that of the same group-version."""
        held = self.documents.get(group_version)
        if held is not None and held.hash == hash:
            return
        # A search in a stored index reads no document.
        from specmux_tools.search_index.document_reader import DocumentReader

        reader = DocumentReader(self.graph, document)
        schemas = {found.kind: found.schema for found in kinds_of(document, group_version)}
        names = list(names_in(document, group_version))
        known = {each.kind.kind for each in names}
        roots = []
        for name in names:
            entry = self.graph.entry(name.kind.kind, reader.read(schemas[name.kind]))
            roots.append(KindRoot(name, entry, _is_list(name.kind, known)))
        self.documents[group_version] = IndexedDocument(hash, tuple(roots))
        self._add_words(roots)
        self._places = None

    def remove(self, group_version: GroupVersion) -> None:
        if self.documents.pop(group_version, None) is not None:
            self._places = None

    def places_in(self, roots: tuple[KindRoot, ...]) -> SearchPlaces:
        """The places within the given kinds."""
        known = self._within.pop(roots, None)
        if known is None:
            known = places_of(self.graph, roots)
        self._within[roots] = known
        if len(self._within) > _PLACES_KEPT:
            del self._within[next(iter(self._within))]
        return known

    def kinds_with(self, entry: EntryId) -> list[KindName]:
        """The kinds that contain the entry, the cheapest first. A list contains what its kind contains."""
        roots = self.graph.roots_above(entry, _MOST_STEPS)
        found = [
            root for each in roots for root in self.roots.get(each, ()) if each == entry or not root.is_list
        ]
        found.sort(key=lambda root: (self.places.positions[root.entry], root.name.group_version))
        return [root.name for root in found]

    def _name_kinds(self, roots: list[KindRoot], places: SearchPlaces) -> None:
        self.kinds, self.roots, self._within = {}, {}, {}
        for root in sorted(roots, key=lambda root: places.positions[root.entry]):
            self.roots.setdefault(root.entry, []).append(root)
            for name in {*map(str.casefold, (*root.name.names, *root.name.short_names))}:
                self.kinds.setdefault(name, []).append(root)

    def _add_words(self, roots: list[KindRoot]) -> None:
        graph = self.graph
        for entry in range(self.indexed, len(graph.names)):
            for word in of_name(graph.names[entry]):
                self.names.add(word, entry)
        self.indexed = len(graph.names)
        for root in roots:
            for word in {*root.name.names, *root.name.short_names}:
                if word != root.name.kind.kind:
                    self.names.add(word.casefold(), root.entry)
        for node, description in graph.descriptions.items():
            for word in of_description(description):
                self.descriptions.add(word, node)
        graph.descriptions.clear()


def _is_list(kind: GroupVersionKind, known: set[str]) -> bool:
    return kind.kind.endswith("List") and kind.kind.removesuffix("List") in known
