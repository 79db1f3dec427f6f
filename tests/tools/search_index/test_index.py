"""The index: equal fields once, places, what a change does, the form on disk."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.explained_documents import bed, release, release_kinds
from sampling import examples
from shared_data import SHARED
from specmux_converters.document import Document
from specmux_converters.group_versions import GroupVersion
from specmux_converters.resources import GroupVersionKind
from specmux_tools.explanation.tree import Field, FieldPlace, tree_of
from specmux_tools.search_index.index import FieldIndex
from specmux_tools.search_index.query import path_text, search
from specmux_tools.search_index.stored import dump, load

KEY = GroupVersion("apis/garden.example.org/v1")
TEXT = {"type": "string", "description": "What it is called."}


def indexed(**documents: Document) -> FieldIndex:
    index = FieldIndex()
    for name, document in documents.items():
        index.put(GroupVersion(f"apis/garden.example.org/{name}"), document, hash=name)
    return index


def paths(index: FieldIndex, query: str, **options: Any) -> list[str]:
    return [path_text(row) for row in search(index, query, **options).rows]


def test_equal_fields_are_one_row_and_shown_at_the_shorter_path() -> None:
    inner = {"type": "object", "properties": {"title": TEXT}}
    index = indexed(v1=bed(title=TEXT, inner=inner))
    assert paths(index, "title") == ["Bed.spec.title"]
    assert search(index, "title").total == 1


def test_fields_that_differ_are_two_rows() -> None:
    other = {**TEXT, "maxLength": 9}
    index = indexed(v1=bed(title=TEXT, inner={"type": "object", "properties": {"title": other}}))
    assert paths(index, "title") == ["Bed.spec.title", "Bed.spec.inner.title"]


def test_reference_counts_as_what_it_leads_to() -> None:
    soil = {"$ref": "#/components/schemas/Soil"}
    one, two = bed(soil=soil), bed(soil=soil)
    two["components"]["schemas"]["Soil"]["properties"]["acidity"]["maximum"] = 8
    index = indexed(v1=one)
    entries = len(index.graph.names)
    index.put(GroupVersion("apis/garden.example.org/v1"), two, hash="other")
    assert len(index.graph.names) > entries
    assert paths(index, "acidity") == ["Bed.spec.soil.acidity"]
    assert search(index, "acidity").total == 1


def test_changed_document_changes_its_own_rows() -> None:
    index = indexed(v1=bed(title=TEXT))
    index.put(KEY, bed(colour=TEXT), hash="new")
    assert (paths(index, "title"), paths(index, "colour")) == ([], ["Bed.spec.colour"])
    index.put(KEY, bed(title=TEXT), hash="new")
    assert paths(index, "colour") == ["Bed.spec.colour"], "the same hash is the same document"
    index.remove(KEY)
    assert paths(index, "colour") == []


def test_component_within_itself_is_read_once() -> None:
    index = indexed(v1=bed(soil={"$ref": "#/components/schemas/Soil"}))
    assert paths(index, "below") == ["Bed.spec.soil.below"]


def test_row_says_where_else_its_field_is() -> None:
    document = bed(soil={"$ref": "#/components/schemas/Soil"})
    other = bed(soil={"$ref": "#/components/schemas/Soil"}, more=TEXT)
    for schema in other["components"]["schemas"].values():
        for kind in schema.get("x-kubernetes-group-version-kind", ()):
            kind["version"] = "v2"
    index = FieldIndex()
    index.put(KEY, document, hash="1")
    index.put(GroupVersion("apis/garden.example.org/v2"), other, hash="2")
    row = search(index, "acidity").rows[0]
    assert (row.also_in, row.also_in_count) == (("garden.example.org/v2 Bed",), 1)


def test_stored_index_answers_the_same() -> None:
    index = indexed(v1=bed(title=TEXT, soil={"$ref": "#/components/schemas/Soil"}))
    loaded = load(dump(index))
    assert loaded is not None
    for query in ("title", "bed", "acidity", "plants stand", "be"):
        assert search(loaded, query) == search(index, query)
    loaded.put(KEY, bed(colour=TEXT), hash="new")
    assert paths(loaded, "colour") == ["Bed.spec.colour"]


@examples(200)
@given(st.data())
def test_torn_index_is_none_or_whole(data: st.DataObject) -> None:
    stored = bytearray(dump(indexed(v1=bed(title=TEXT))))
    for _ in range(data.draw(st.integers(1, 3))):
        stored[data.draw(st.integers(0, len(stored) - 1))] = data.draw(st.integers(32, 126))
    loaded = load(bytes(stored))
    assert loaded is None or isinstance(search(loaded, "title").total, int)


@pytest.mark.parametrize(("words", "number"), [("words", 99), ("words", -1), ("described", 99)])
def test_index_whose_words_lead_nowhere_is_none(words: str, number: int) -> None:
    torn = orjson.loads(dump(indexed(v1=bed(title=TEXT))))
    torn[words]["title"] = [number]
    assert load(orjson.dumps(torn)) is None


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"form":1}', b'{"form":0}'])
def test_what_is_no_index_is_none(data: bytes) -> None:
    assert load(data) is None


@pytest.mark.long
def test_every_field_of_the_release_is_found_where_it_is() -> None:
    index = FieldIndex()
    for key, document in release().items():
        index.put(key, document, hash="1")
    least = 5000 if (SHARED / "golden/crd-openapi-v3").exists() else 1000  # without custom resources
    assert least < len(index.graph.names) < 10_000
    loaded = load(dump(index))
    assert loaded is not None
    checked = 0
    trees: dict[GroupVersionKind, Field] = {}
    for entry in range(0, len(index.graph.names), 7):
        if index.places.positions[entry] < 0 or index.places.parents[entry] < 0:
            continue
        assert loaded.places.positions[entry] == index.places.positions[entry]
        above = list(index.places.above(entry))
        kind = release_kinds().find(index.places.roots[above[-1]].name.kind)
        assert kind is not None
        if kind.kind not in trees:
            trees[kind.kind] = tree_of(kind.document, FieldPlace((), kind.schema))
        tree = trees[kind.kind]
        for each in reversed([entry, *above[:-1]]):
            tree = _child(tree, index.graph.names[each])
        checked += 1
    assert checked > least // 10


def _child(field: Field, name: str) -> Field:
    return next(each for each in field.fields if each.name == name)


class _Interrupted(Exception):
    pass


@given(calls=st.integers(1, 900))
def test_interrupted_document_leaves_the_index_as_it_was(calls: int) -> None:
    @contextmanager
    def interrupting() -> Iterator[None]:
        left = calls

        def count(frame: object, event: str, argument: object) -> None:
            nonlocal left
            left -= event == "c_call"
            if not left:
                raise _Interrupted

        sys.setprofile(count)
        try:
            yield
        finally:
            sys.setprofile(None)

    first, second = bed(name={"type": "string"}), bed(name={"type": "string"}, size={"type": "integer"})
    index, expected = FieldIndex(), FieldIndex()
    for each in (index, expected):
        each.put(KEY, first, hash="A")
    with suppress(_Interrupted):
        index.put(KEY, second, hash="B", within=interrupting)
        return  # it was read before it could be interrupted
    assert index.graph == expected.graph
    for each in (index, expected):
        each.put(KEY, second, hash="B")
    assert index.graph == expected.graph
    assert (index.names.by_word, index.descriptions.by_word) == (
        expected.names.by_word,
        expected.descriptions.by_word,
    )
