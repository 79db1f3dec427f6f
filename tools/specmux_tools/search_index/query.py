"""Ranks search results.

Ranks: 0 the name of a kind; 1 whole words that begin the name of a kind that most people use; 2 the last
words are the name, the others are in the path, and behind those any prefix of a kind; 3 all are in the name;
4 in the name and the path; 5 also in the description; 6 in the description alone; 8 a prefix of a list.
Words match as prefixes, in any case; single letters match as a whole. Results of one rank are in the order of
their places.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from heapq import nsmallest
from typing import Any, Final

from specmux_converters.lazy.dataclasses import dataclass
from specmux_converters.lazy.patterns import pattern
from specmux_tools.errors import InvalidPath
from specmux_tools.explanation.field_path import format_path, parse, similar_to
from specmux_tools.explanation.kind_names import KindName
from specmux_tools.search_index.graph import MOST_USED, EntryId, KindRoot, SearchPlaces
from specmux_tools.search_index.index import FieldIndex, Postings
from specmux_tools.search_index.words import query_words

_QUALIFIED: Final = pattern(r"\s*((?:[a-z0-9.-]+/)?v[0-9]+(?:(?:alpha|beta)[0-9]+)?)(?:/|\s+)(\S.*)")
_OBJECT: Final = pattern(r"\s*([A-Za-z0-9.]+)/\S*\s*")
_LENGTHS: Final = 2
"""Largest difference in length between a word and a suggestion, in characters."""


def version_in(index: FieldIndex, query: str) -> tuple[tuple[KindRoot, ...], str]:
    """The kinds of the version that the query begins with, and the rest of the query; empty if there is no
    such version. Drops an object's name after a kind."""
    qualified = _QUALIFIED.fullmatch(query)
    if qualified is not None:
        roots = tuple(root for root in roots_of(index) if root.name.kind.api_version == qualified[1])
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
        if next(index.names.words_with(word), None) or next(index.descriptions.words_with(word), None):
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


MOST_ROWS: Final = 200
MOST_OFFSET: Final = 1000
MOST_POSTINGS: Final = 5000
"""Most entries of one word; further ones are not ranked."""
_NAMED: Final = 20
"""Most kinds that a result names beside its own."""
_KINDS_TRIED: Final = 3
"""Kinds of one name whose fields are searched."""

_RARE: Final = 500
"""Number of descriptions up to which a word is also combined with others in the path."""

_LIST_RANK: Final = 8
"""The rank of a list whose name only begins so."""
_NO_RANK: Final = 9


@dataclass(frozen=True, slots=True)
class SchemaHit:
    kind: KindName
    path: tuple[str, ...]
    """Empty for a kind."""
    type: str
    summary: str
    also_in: tuple[str, ...]
    """Other kinds that have the same field, as ``group/version Kind``; at most 20."""
    also_in_count: int

    @property
    def kind_name(self) -> str:
        """The kind as in manifests: Deployment."""
        return self.kind.kind.kind

    @property
    def api_version(self) -> str:
        """The group-version as in manifests: apps/v1."""
        return self.kind.kind.api_version

    @property
    def field(self) -> str:
        """spec.replicas; "" for a kind."""
        return ".".join(self.path)


@dataclass(frozen=True, slots=True)
class SearchResult:
    rows: tuple[SchemaHit, ...]
    total: int
    is_partial: bool
    """A word is so frequent that not all its entries were ranked."""
    did_you_mean: str = ""
    """A query with results, if this one has none."""


@dataclass(slots=True)
class _Hits:
    """The entries of one word."""

    word: str
    entries: Collection[EntryId]
    """Entries by name."""
    nodes: Collection[int]
    """Nodes by description."""


def search(
    index: FieldIndex, query: str, *, limit: int = 20, offset: int = 0, group: str | None = None
) -> SearchResult:
    """Raises InvalidPath for a malformed query. ``group``: restricts to one API group, "" for the core.

    A query may begin with a version before a kind, or be the full path of a field.
    """
    query_words(query)
    everywhere = index.places  # updates the kinds
    whole = at_path(index, query, group)
    if whole:
        nodes, targets = index.graph.nodes, index.graph.targets
        shown = ((*each, nodes[targets[each[2]]]) for each in whole[offset : offset + limit])
        rows = (SchemaHit(root.name, path, node.type, node.summary, (), 0) for root, path, _, node in shown)
        return SearchResult(tuple(rows), len(whole), False)
    of_version, rest = version_in(index, query)
    words = query_words(rest)
    within, places = None, everywhere
    if group is not None or of_version:
        roots = of_version or roots_of(index)
        within = tuple(root for root in roots if group in (None, root.name.kind.group))
        places = index.places_in(within)
    hits = [_Hits(word, _numbers(index.names, word), _numbers(index.descriptions, word)) for word in words]
    ranking = _Ranking(index, words, hits, places, _kinds_called(index, words, within))
    ranked = list(ranking.rows())
    best = nsmallest(offset + limit, ranked, key=lambda row: row[:4])[offset:]
    return SearchResult(
        tuple(_row(index, entry, within) for *_, entry, within in best),
        len(ranked),
        any(len(hit.entries) >= MOST_POSTINGS or len(hit.nodes) >= MOST_POSTINGS for hit in hits),
        "" if ranked else closest_query(index, words),
    )


def _numbers(postings: Postings, word: str) -> set[int]:
    """Numbers of the exact word, then of words with that prefix. A single letter has too many."""
    found = set(postings.by_word.get(word, ())[:MOST_POSTINGS])
    if len(word) == 1:
        return found
    for longer in postings.words_with(word):
        if len(found) >= MOST_POSTINGS:
            break
        found.update(postings.by_word[longer][: MOST_POSTINGS - len(found)])
    return found


def _kinds_called(
    index: FieldIndex, words: tuple[str, ...], within: tuple[KindRoot, ...] | None
) -> list[KindRoot]:
    """Kinds named by one word, or by all but the last words together; restricted to the given ones."""
    names = [*words, *("".join(words[:end]) for end in range(2, len(words)))]
    among = None if within is None else frozenset(within)
    called = (
        [root for root in index.kinds.get(name, ()) if among is None or root in among] for name in names
    )
    return [root for roots in called for root in roots[:_KINDS_TRIED] if not root.is_list]


_Ranked = tuple[int, int, int, int, EntryId, SearchPlaces]
"""Rank, whether no word names the kind, position there, position anywhere, and the entry and places they
belong to."""


class _Ranking:
    def __init__(
        self,
        index: FieldIndex,
        words: tuple[str, ...],
        hits: list[_Hits],
        places: SearchPlaces,
        kinds: list[KindRoot],
    ) -> None:
        self._index = index
        self._graph = index.graph
        self._words = words
        self._hits = hits
        self._places = places
        self._endings = {"".join(words[start:]): start for start in range(len(words))}
        self._kinds = [index.places_in((root,)) for root in dict.fromkeys(kinds)]
        self._called = {root.entry for root in kinds}
        """Kinds whose exact name is one of the words."""

    def rows(self) -> Iterator[_Ranked]:
        for entry in self._candidates():
            row = self._best(entry)
            if row is not None:
                yield row

    def _candidates(self) -> Iterator[EntryId]:
        by_name: set[EntryId] = set().union(*(hit.entries for hit in self._hits))
        for ending in self._endings:
            for name in (ending, f"{ending}s", f"{ending}es"):  # singular and plural
                by_name.update(self._index.names.by_word.get(name, ())[:MOST_POSTINGS])
        yield from by_name
        described = set(self._hits[0].nodes).intersection(*(hit.nodes for hit in self._hits[1:]))
        # For a rare word, the others may be in the path.
        described.update(node for hit in self._hits if len(hit.nodes) <= _RARE for node in hit.nodes)
        for node in described:
            yield from (entry for entry in self._graph.leading[node] if entry not in by_name)

    def _best(self, entry: EntryId) -> _Ranked | None:
        """The entry at its place or within a requested kind, whichever ranks better."""
        found = None
        for places in (*self._kinds, self._places):
            position = places.positions[entry]
            if position < 0:
                continue
            rank, begun = self._rank(entry, places)
            if rank == _NO_RANK:
                continue
            row = (rank, begun, position, self._places.positions[entry], entry, places)
            if found is None or row[:2] < found[:2]:
                found = row
        return found

    def _rank(self, entry: EntryId, places: SearchPlaces) -> tuple[int, int]:
        """The rank, and 1 if words name a kind that does not contain the entry, otherwise 0."""
        if places.parents[entry] < 0:
            rank = self._rank_of_kind(entry)
            if rank < _NO_RANK:
                return rank, int(rank == 2)
        name = self._graph.names[entry].casefold()
        start = self._endings.get(name)
        if start is None and name.endswith("s"):
            start = self._endings.get(name[:-1])
        # Most entries of a single word need no check of their parents.
        if start is None and len(self._hits) == 1 and not self._called and entry in self._hits[0].entries:
            return 3, 0
        above = list(places.above(entry))
        if start is not None and all(self._is_above(hit, above) for hit in self._hits[:start]):
            return 2, self._apart(above)
        where = [self._where(hit, entry, above) for hit in self._hits]
        worst = max(where)
        if worst == _NO_RANK:
            return _NO_RANK, 0
        if 3 not in where:
            return (6 if 6 in where else _NO_RANK), self._apart(above)
        return min(worst, 5), self._apart(above)

    def _rank_of_kind(self, entry: EntryId) -> int:
        joined, rank = "".join(self._words), _NO_RANK
        for root in self._index.roots.get(entry, ()):
            for name in (*root.name.names, *root.name.short_names):
                folded = name.casefold()
                if folded == joined:
                    return 0
                if folded.startswith(joined):
                    rank = min(rank, _rank_of_prefix(root, len(joined)))
        return rank

    def _where(self, hit: _Hits, entry: EntryId, above: list[EntryId]) -> int:
        """The best rank that one word alone allows."""
        if entry in hit.entries:
            return 3
        if self._is_above(hit, above):
            return 4
        return 6 if self._graph.targets[entry] in hit.nodes else _NO_RANK

    @staticmethod
    def _is_above(hit: _Hits, above: list[EntryId]) -> bool:
        return any(each in hit.entries for each in above)

    def _apart(self, above: list[EntryId]) -> int:
        return 0 if not self._called or not self._called.isdisjoint(above) else 1


def _rank_of_prefix(root: KindRoot, length: int) -> int:
    kind = root.name.kind
    if root.is_list:
        return _LIST_RANK
    return 1 if (kind.group, kind.kind) in MOST_USED and _ends_word(kind.kind, length) else 2


def _ends_word(name: str, end: int) -> bool:
    """Whether a word of a name ends there."""
    before, behind, next = name[end - 1 : end], name[end : end + 1], name[end + 1 : end + 2]
    return behind.isupper() and (before.islower() or next.islower())


def _row(index: FieldIndex, entry: EntryId, places: SearchPlaces) -> SchemaHit:
    graph = index.graph
    above = list(places.above(entry))
    root = above[-1] if above else entry
    kind = places.roots[root].name
    path = tuple(graph.names[each] for each in reversed((entry, *above[:-1]))) if above else ()
    others = [each for each in index.kinds_with(entry) if each != kind]
    node = graph.nodes[graph.targets[entry]]
    named = tuple(f"{each.kind.api_version} {each.kind.kind}" for each in others)
    return SchemaHit(kind, path, node.type, node.summary, named[:_NAMED], len(named))


def path_text(row: SchemaHit) -> str:
    """The path as an argument of ``specmux explain``."""
    return format_path((row.kind.kind.kind, *row.path))


def found_json(found: SearchResult) -> dict[str, Any]:
    made = {"total": found.total, "partial": found.is_partial, "rows": [row_json(row) for row in found.rows]}
    return {**made, "didYouMean": found.did_you_mean} if found.did_you_mean else made


def row_json(row: SchemaHit) -> dict[str, Any]:
    kind = row.kind.kind
    made = {"group": kind.group, "version": kind.version, "kind": kind.kind, "path": format_path(row.path)}
    more = {"type": row.type, "description": row.summary, "alsoIn": list(row.also_in)}
    return {**made, "document": row.kind.group_version, **more, "alsoInCount": row.also_in_count}
