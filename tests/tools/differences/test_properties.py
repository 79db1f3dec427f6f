"""What holds for any documents: they are themselves, however written; one way is the other way round."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import shared_data
from data.compared import compared_documents, document, inlined, of_documents, reversed_members, told
from sampling import examples
from shared_data import DATA, files, native_files
from specmux_converters.errors import ConverterError
from specmux_converters.recognise import DocumentKind, recognise
from specmux_tools.differences import ServedSide, add_document, add_manifests, compare
from specmux_tools.differences.reports import render, report_of
from specmux_tools.reports import FORMS

NAMES = st.sampled_from(["a", "b", "default", "required", "items", "ca.crt", "$ref", "status"])
LEAVES = st.sampled_from(
    [
        {},
        {"type": "string"},
        {"type": "string", "maxLength": 5},
        {"type": "string", "enum": ["A", "B"]},
        {"type": "string", "enum": ["B"], "default": "B"},
        {"type": "integer", "format": "int32"},
        {"type": "integer", "format": "int64", "minimum": 1},
        {"type": "boolean", "nullable": True},
        {"x-kubernetes-int-or-string": True},
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        {"type": "string", "description": "Deprecated: not used."},
        {"type": "string", "x-kubernetes-validations": [{"rule": "self == oldSelf"}]},
    ]
)


def schemas(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.recursive(leaves, containers, max_leaves=8)


def containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    properties = st.dictionaries(NAMES, inner, min_size=1, max_size=4)
    objects = st.builds(
        lambda fields, needed: {
            "type": "object",
            "properties": fields,
            "required": sorted(needed & fields.keys()),
        },
        properties,
        st.frozensets(NAMES, max_size=2),
    )
    maps = inner.map(lambda values: {"type": "object", "additionalProperties": values})
    kinds = st.sampled_from([{}, {"x-kubernetes-list-type": "set"}, {"x-kubernetes-list-type": "atomic"}])
    lists = st.builds(lambda items, kind: {"type": "array", "items": items, **kind}, inner, kinds)
    return st.one_of(objects, objects, maps, lists, inner.map(lambda part: {"allOf": [part]}))


PLAIN = schemas(LEAVES)
REFERENCES = st.sampled_from([{"$ref": "#/components/schemas/One"}, {"$ref": "#/components/schemas/Two"}])
REFERRING = schemas(st.one_of(LEAVES, REFERENCES))

quick = examples(150)


@quick
@given(schema=REFERRING, one=PLAIN, two=PLAIN)
def test_a_document_and_itself_written_in_other_ways_do_not_differ(schema: Any, one: Any, two: Any) -> None:
    components = {"One": one, "Two": two}
    plain = document(schema, components)
    assert told(compared_documents(plain, copy.deepcopy(plain))) == []
    assert told(compared_documents(plain, reversed_members(plain))) == []
    assert told(compared_documents(plain, document(inlined(schema, components)))) == []
    assert told(compared_documents(document(inlined(schema, components)), plain)) == []
    renamed = document(_renamed(schema), {"Three": one, "Four": two})
    assert told(compared_documents(plain, renamed)) == []


@quick
@given(old=PLAIN, new=PLAIN)
def test_references_change_nothing_of_what_is_told(old: Any, new: Any) -> None:
    there = {"$ref": "#/components/schemas/One"}
    in_place = compared_documents(document(old), document(new))
    referred = compared_documents(document(there, {"One": old}), document(there, {"One": new}))
    assert told(in_place) == told(referred)
    assert in_place.documentation == referred.documentation


OPPOSITES = {
    "type-widened": "type-narrowed",
    "format-widened": "format-narrowed",
    "enum-removed": "enum-added",
    "enum-value-removed": "enum-value-added",
    "constraint-relaxed": "constraint-tightened",
    "nullable-removed": "nullable-added",
    "default-removed": "default-added",
    "deprecated": "undeprecated",
    "field-became-mutable": "field-became-immutable",
    "field-became-optional": "field-became-required",
    "unknown-fields-preserved": "unknown-fields-pruned",
}
OPPOSITES |= {right: left for left, right in OPPOSITES.items()}
ADDED = ("field-added", "field-added-required", "field-typed")
REMOVED = ("field-removed", "field-untyped")


@quick
@given(old=PLAIN, new=PLAIN)
def test_what_goes_one_way_comes_the_other_way(old: Any, new: Any) -> None:
    forth = compared_documents(document(old), document(new)).places
    back = compared_documents(document(new), document(old)).places
    there = {(place.id, place.path) for place in back}
    opened = [place.path for place in forth if place.id == "map-opened"]
    for place in forth:
        if any(place.path.startswith(path) for path in opened):
            continue  # the other way the map closes, which is told alone
        if place.id in REMOVED and not place.path.endswith("{}"):
            assert any((added, place.path) in there for added in ADDED), place
        if place.id in OPPOSITES:
            # A constraint that all old values met is told only where it goes.
            is_met = place.id == "constraint-relaxed"
            assert (OPPOSITES[place.id], place.path) in there or is_met, place
        if place.id in ("type-changed", "format-changed", "default-changed", "list-type-changed"):
            assert (place.id, place.path) in there


@quick
@given(old=PLAIN, new=PLAIN)
def test_every_form_of_a_report_is_the_same_bytes_each_time(old: Any, new: Any) -> None:
    first = compared_documents(document(old), document(new))
    again = compared_documents(reversed_members(document(old)), reversed_members(document(new)))
    for form in FORMS:
        assert _rendered(first, form) == _rendered(again, form)


REAL = [
    *native_files(),
    *files(DATA / "k8s-v3-only"),
    *files(DATA / "k8s-v3-nongv"),
]
DEFINITIONS = [*files(DATA / "crds"), *files(DATA / "crd-pairs")]


@pytest.mark.parametrize("file", REAL)
def test_real_documents_do_not_differ_from_themselves(file: Path, tally: Callable[[str, int], None]) -> None:
    tally("documents compared with themselves", 1)
    parsed = shared_data.load(file)
    if "paths" not in parsed:
        return
    reordered = reversed_members(parsed)
    assert told(compare(of_documents([parsed]), of_documents([reordered]))) == []


@pytest.mark.parametrize("file", DEFINITIONS)
def test_real_definitions_do_not_differ_from_themselves(
    file: Path, tally: Callable[[str, int], None]
) -> None:
    try:
        found = recognise(shared_data.read(file))
    except ConverterError:
        return
    tally("definitions compared with themselves", len(found.documents))
    sides = [
        _served(found.kind, documents)
        for documents in (found.documents, map(reversed_members, found.documents))
    ]
    assert told(compare(*sides)) == []


def _served(kind: DocumentKind, documents: Any) -> ServedSide:
    served = ServedSide()
    if kind is DocumentKind.CRDS:
        add_manifests(served, documents)
    elif kind is DocumentKind.OPENAPI_3:
        for item in documents:
            add_document(served, item)
    return served


def _renamed(schema: Any) -> Any:
    if isinstance(schema, dict):
        reference = schema.get("$ref")
        if isinstance(reference, str):
            return {"$ref": reference.replace("One", "Three").replace("Two", "Four")}
        return {key: _renamed(value) for key, value in schema.items()}
    return [_renamed(item) for item in schema] if isinstance(schema, list) else schema


def _rendered(comparison: Any, form: str) -> str:
    return render(report_of(comparison, old="old", new="new"), form)
