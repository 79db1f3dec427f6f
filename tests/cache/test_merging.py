from __future__ import annotations

import json

import pytest

from shared_data import documents, load
from specmux_cache.errors import MergeRefused
from specmux_cache.reading.merging import merge_documents


def spec(paths=(), **schemas):
    return {
        "openapi": "3.0.0",
        "paths": {path: {"get": answer(name)} for path, name in paths},
        "components": {"schemas": schemas},
    }


def answer(name):
    """An operation that answers with a component."""
    return {"responses": {"200": {"content": {"application/json": {"schema": to(name)}}}}}


def to(name):
    return {"$ref": f"#/components/schemas/{name}"}


def test_components_when_they_are_the_same_are_one():
    merged = merge_documents({"a": spec(Foo={"type": "object"}), "b": spec(Foo={"type": "object"})})
    assert list(merged.document["components"]["schemas"]) == ["Foo"]
    assert (merged.renamed, merged.dropped) == ({}, {})


def test_components_when_they_differ_are_renamed_with_what_refers_to_them():
    merged = merge_documents(
        {
            "a": spec([("/a", "Foo")], Foo={"properties": {"p": to("Bar")}}, Bar={"type": "string"}),
            "b": spec(
                [("/b", "Foo")],
                Foo={"properties": {"p": to("Bar")}},
                Bar={"type": "integer"},
                Own={"properties": {"p": to("Bar")}},
            ),
        }
    )
    schemas = merged.document["components"]["schemas"]
    # Foo says the same words in both, but of another Bar.
    assert schemas == {
        "Foo": {"properties": {"p": to("Bar")}},
        "Bar": {"type": "string"},
        "Foo_v2": {"properties": {"p": to("Bar_v2")}},
        "Bar_v2": {"type": "integer"},
        "Own": {"properties": {"p": to("Bar_v2")}},
    }
    assert merged.document["paths"]["/b"]["get"] == answer("Foo_v2")
    assert merged.renamed == {"b": {"schemas/Foo": "schemas/Foo_v2", "schemas/Bar": "schemas/Bar_v2"}}


def test_components_when_most_documents_agree_keep_the_name():
    merged = merge_documents({"a": spec(Foo={"x": 1}), "b": spec(Foo={"x": 2}), "c": spec(Foo={"x": 2})})
    assert merged.document["components"]["schemas"] == {"Foo": {"x": 2}, "Foo_v2": {"x": 1}}
    assert merged.renamed == {"a": {"schemas/Foo": "schemas/Foo_v2"}}


def test_components_when_the_new_name_is_taken_already():
    merged = merge_documents({"a": spec(Foo={"x": 1}, Foo_v2={"x": 9}), "b": spec(Foo={"x": 2})})
    assert merged.document["components"]["schemas"] == {
        "Foo": {"x": 1},
        "Foo_v2": {"x": 9},
        "Foo_v3": {"x": 2},
    }


def test_components_when_they_refer_to_each_other():
    def ring(kind):
        return spec(A={"properties": {"p": to("B")}}, B={"properties": {"p": to("A")}, "type": kind})

    merged = merge_documents({"a": ring("x"), "b": ring("y"), "c": ring("x")})
    assert list(merged.renamed) == ["b"]
    assert merged.document["components"]["schemas"]["A_v2"] == {"properties": {"p": to("B_v2")}}


def test_operations_when_two_documents_have_them_differently_keep_the_first():
    first, second = spec([("/p", "A")], A={"x": 1}), spec([("/p", "B")], B={"x": 2})
    second["paths"]["/p"]["put"] = {"summary": "1"}
    merged = merge_documents({"b": second, "a": first})
    assert merged.document["paths"]["/p"] == {"get": answer("A"), "put": {"summary": "1"}}
    assert merged.dropped == {"b": ("/paths/~1p/get: another document has the operation",)}


@pytest.mark.parametrize("odd", [{}, {"paths": None}, {"paths": {}, "components": {}}])
def test_documents_when_they_are_empty_do_no_harm(odd):
    assert merge_documents({"a": odd}).document["paths"] == {}


@pytest.mark.parametrize("odd", [{"paths": []}, {"components": []}])
def test_documents_when_they_are_none_are_refused_by_place(odd):
    with pytest.raises(MergeRefused, match=next(iter(odd))):
        merge_documents({"a": odd, "b": spec(Foo={"type": "object"})})


def test_merge_when_there_is_nothing_is_refused():
    with pytest.raises(MergeRefused, match="nothing to merge"):
        merge_documents({})


def test_security_of_one_document_does_not_reach_the_operations_of_another():
    guarded, public = spec([("/a", "A")], A={}), spec([("/b", "B")], B={})
    guarded["security"] = [{"token": []}]
    merged = merge_documents({"a": guarded, "b": public}).document
    assert "security" not in merged
    assert merged["paths"]["/a"]["get"]["security"] == [{"token": []}]
    assert "security" not in merged["paths"]["/b"]["get"]


def test_data_that_looks_like_a_reference_stays():
    first, second = spec(Foo={"type": "string"}), spec(Foo={"example": to("Foo")})
    merged = merge_documents({"a": first, "b": second}).document
    assert merged["components"]["schemas"]["Foo_v2"] == {"example": to("Foo")}


def test_a_whole_release_when_merged_has_no_dangling_reference_and_one_result():
    specs = {name: load(path) for name, path in documents("1.35").items()}
    before = json.dumps(specs)
    merged = merge_documents(specs)
    text = json.dumps(merged.document)
    assert json.dumps(specs) == before
    assert text == json.dumps(merge_documents(dict(reversed(specs.items()))).document)
    schemas = merged.document["components"]["schemas"]
    referred = {part.split('"')[0] for part in text.split('"#/components/schemas/')[1:]}
    assert referred <= set(schemas)
    assert sum(len(item) for item in merged.document["paths"].values()) >= max(
        sum(len(item) for item in one["paths"].values()) for one in specs.values()
    )
    # Documents of one release agree about what they share.
    assert not merged.renamed
    assert not merged.dropped
