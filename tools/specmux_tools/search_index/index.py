"""The index of a set of documents: entries by the words in their names and descriptions.

Replacing a document leaves its old entries behind; when more than half are stale, the owner should build a
new index (``is_worn``).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import Final

from specmux_converters.document import Document
from specmux_converters.group_versions import GroupVersion
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.explanation.kind_names import KindName, names_in
from specmux_tools.kinds import kinds_of
from specmux_tools.search_index.graph import EntryId, FieldGraph, KindRoot, NodeId, SearchPlaces, places_of
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

    def words_with(self, prefix: str) -> Iterator[str]:
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

    def put(
        self,
        group_version: GroupVersion,
        document: Document,
        *,
        hash: str,
        within: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> None:
        """Adds a document, replacing that of the same group-version. What ``within`` raises at any moment,
        to bound what one document takes, leaves the index as it was."""
        held = self.documents.get(group_version)
        if held is not None and held.hash == hash:
            return
        graph = self.graph
        before = len(graph.nodes), len(graph.names)
        try:
            with within():
                roots = self._read_document(group_version, document)
                named, described = self._words(roots)
        except BaseException:
            graph.cut(*before)
            raise
        for word, entry in named:
            self.names.add(word, entry)
        for word, node in described:
            self.descriptions.add(word, node)
        self.indexed = len(graph.names)
        graph.descriptions.clear()
        self.documents[group_version] = IndexedDocument(hash, tuple(roots))
        self._places = None

    def _read_document(self, group_version: GroupVersion, document: Document) -> list[KindRoot]:
        # A search in a stored index reads no document.
        from specmux_tools.search_index.document_reader import DocumentReader

        reader = DocumentReader(self.graph, document)
        schemas = {found.kind: found.schema for found in kinds_of(document, group_version)}
        names = list(names_in(document, group_version))
        known = {each.kind.kind for each in names}
        roots = []
        for name in names:
            entry = self.graph.entry(name.kind.kind, reader.read(schemas[name.kind]))
            of_list = name.kind.kind.removesuffix("List")
            roots.append(KindRoot(name, entry, of_list != name.kind.kind and of_list in known))
        return roots

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

    def _words(self, roots: list[KindRoot]) -> tuple[list[tuple[str, EntryId]], list[tuple[str, NodeId]]]:
        """The words of the names and the descriptions that are not indexed yet."""
        graph = self.graph
        named = [
            (word, entry)
            for entry in range(self.indexed, len(graph.names))
            for word in of_name(graph.names[entry])
        ]
        named += [
            (word.casefold(), root.entry)
            for root in roots
            for word in {*root.name.names, *root.name.short_names}
            if word != root.name.kind.kind
        ]
        described = [
            (word, node) for node, text in graph.descriptions.items() for word in of_description(text)
        ]
        return named, described
