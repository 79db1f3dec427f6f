"""Splitting, sharing, the memo, determinism and bounds of a conversion."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from data.built_in_swagger import swagger_of
from shared_data import PUBLISHED, SHARED, documents, read
from specmux_converters import Conversion, ConverterError, Limits, convert, parse
from specmux_converters.document import canonical
from specmux_converters.errors import InvalidDocument, LimitExceeded
from specmux_converters.from_swagger2.conversion import convert_whole
from specmux_converters.outlines import DocumentPart

OK = {"200": {"description": "OK", "schema": {"$ref": "#/definitions/a.Pod"}}}
DOCUMENT: dict[str, Any] = {
    "swagger": "2.0",
    "info": {"title": "t", "version": "1"},
    "consumes": ["application/json"],
    "parameters": {"pretty": {"name": "pretty", "in": "query", "type": "string"}},
    "securityDefinitions": {"k": {"type": "apiKey", "name": "n", "in": "header"}},
    "definitions": {
        "a.Pod": {"properties": {"meta": {"$ref": "#/definitions/Meta", "description": "d"}}},
        "Meta": {"properties": {"owner": {"$ref": "#/definitions/Meta"}}},
        "Unused": {"x-kubernetes-group-version-kind": [{"group": "apps"}]},
        "Apps": {"type": "object", "type ": 1},
    },
    "paths": {
        "/api/v1/pods": {"parameters": [{"$ref": "#/parameters/pretty"}], "get": {"responses": OK}},
        "/apis/apps/v1/": {
            "get": {"responses": {"200": {"description": "", "schema": {"$ref": "#/definitions/Apps"}}}}
        },
        "/apis/batch/v1/jobs": {"get": {"responses": OK}},
        "/version/": {"get": {"responses": {"200": {"description": ""}}}},
    },
}


def copied(document: Any) -> Any:
    return orjson.loads(orjson.dumps(document))


def test_documents_are_split_and_pruned_to_what_their_paths_refer_to() -> None:
    conversion = convert(DOCUMENT)
    found = {
        key: sorted(document["components"].get("schemas", ()))
        for key, document in conversion.documents.items()
    }
    assert found == {
        "api/v1": ["Meta", "a.Pod"],
        "apis/apps/v1": ["Apps"],
        "apis/batch/v1": ["Meta", "a.Pod"],
        "version": [],
    }
    assert "schemas" not in conversion.documents[("version")]["components"]


def test_oas_profile_prunes_every_kind_of_component() -> None:
    components = {
        key: document["components"].keys()
        for key, document in convert(DOCUMENT, profile="oas").documents.items()
    }
    assert components["api/v1"] == {"schemas", "parameters", "securitySchemes"}
    assert components["apis/batch/v1"] == {"schemas", "securitySchemes"}


def test_only_owned_group_versions_are_converted() -> None:
    broken = copied(DOCUMENT)
    broken["paths"]["/apis/apps/v1/"] = "no object"
    conversion = convert(broken, owns=lambda key: key == "api/v1")
    assert list(conversion.documents) == ["api/v1"]
    with pytest.raises(InvalidDocument) as refused:
        convert(broken)
    assert refused.value.pointer == "/paths/~1apis~1apps~1v1~1"


def test_path_without_group_version_is_a_loss() -> None:
    document = {**DOCUMENT, "paths": {"/": {}, "x-p": 1}}
    conversion = convert(document)
    assert conversion.documents == {}
    assert [loss.pointer for loss in conversion.losses] == ["/paths/x-p", "/paths/~1"]


def test_definition_is_the_same_object_in_all_documents() -> None:
    documents = convert(DOCUMENT).documents
    pods = [documents[key]["components"]["schemas"]["a.Pod"] for key in ("api/v1", "apis/batch/v1")]
    assert pods[0] is pods[1]


def test_result_shares_nothing_with_the_input() -> None:
    document = copied(DOCUMENT)
    conversion = convert(document)
    document["definitions"]["a.Pod"]["properties"].clear()
    document["info"]["title"] = "changed"
    assert dict(conversion.documents) == dict(convert(DOCUMENT).documents)


def test_json_is_the_canonical_form_of_the_document() -> None:
    conversion = convert(DOCUMENT)
    for key, document in conversion.documents.items():
        assert conversion.json(key) == canonical(document)


@pytest.mark.parametrize("profile", ["kubernetes", "oas"])
def test_json_is_the_canonical_form_of_real_documents(profile: Any) -> None:
    published = SHARED / PUBLISHED
    whole = parse(read(published)) if published.exists() else swagger_of("1.35")
    conversion = convert(whole, profile=profile)
    assert conversion.documents.keys() >= documents("1.35").keys()
    for key, document in conversion.documents.items():
        assert conversion.json(key) == canonical(document)


def schemas(conversion: Conversion, key: str = "api/v1") -> Any:
    return conversion.documents[key]["components"]["schemas"]  # type: ignore[index]


def test_a_part_is_parsed_once_from_its_json() -> None:
    made = DocumentPart(b'{"a":{"b":1}}', frozenset(), ())
    assert made.value() == {"a": {"b": 1}}
    assert made.value() is made.value()


# Determinism


def shuffled(node: Any, draw: Any) -> Any:
    if isinstance(node, dict):
        keys = draw(st.permutations(list(node)))
        return {key: shuffled(node[key], draw) for key in keys}
    if isinstance(node, list):
        return [shuffled(item, draw) for item in node]
    return node


@given(st.data())
def test_key_order_does_not_show(data: st.DataObject) -> None:
    document = shuffled(DOCUMENT, data.draw)
    for profile in ("kubernetes", "oas"):
        ours, theirs = convert(document, profile=profile), convert(DOCUMENT, profile=profile)  # type: ignore[arg-type]
        assert {key: orjson.dumps(value) for key, value in ours.documents.items()} == {
            key: orjson.dumps(value) for key, value in theirs.documents.items()
        }
        assert ours.losses == theirs.losses


@pytest.mark.parametrize("seed", ["0", "1", "2"])
def test_another_process_makes_the_same_bytes(seed: str) -> None:
    program = """
import sys, orjson
from specmux_converters.from_swagger2.conversion import convert, convert_whole
document = orjson.loads(sys.stdin.buffer.read())
documents = convert(document).documents
made = [orjson.dumps(documents[key]) for key in documents] + [orjson.dumps(convert_whole(document).document)]
sys.stdout.buffer.write(b"".join(made))
"""
    made = subprocess.run(
        [sys.executable, "-c", program],
        input=orjson.dumps(DOCUMENT),
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONHASHSEED": seed},
    )
    documents = convert(DOCUMENT).documents
    expected = b"".join(orjson.dumps(documents[key]) for key in documents)
    assert made.stdout == expected + orjson.dumps(convert_whole(DOCUMENT).document)


# Bounds

SMALL = Limits(max_expanded_bytes=1_000_000)


def with_paths(paths: Any, **parts: Any) -> Any:
    return {"swagger": "2.0", "info": {"title": "", "version": ""}, "paths": paths, **parts}


NESTED: Any = {"description": "x" * 50_000}
for _ in range(60):
    NESTED = {"properties": {"a": NESTED}}
BIG = {"name": "p", "in": "query", "type": "string", "description": "x" * 10_000}
BOMBS = {
    "parameter written out": with_paths(
        {f"/api/v1/{i}": {"get": {"parameters": [{"$ref": "#/parameters/p"}]}} for i in range(200)},
        parameters={"p": BIG},
    ),
    "body written out": with_paths(
        {
            f"/api/v1/{i}": {"get": {"parameters": [{"$ref": "#/parameters/p"}], "consumes": ["a/a"]}}
            for i in range(200)
        },
        parameters={"p": {"name": "b", "in": "body", "schema": {}, "description": "x" * 10_000}},
    ),
    "definition in many documents": with_paths(
        {f"/apis/g{i}/v1/": {"get": {"responses": OK}} for i in range(200)},
        definitions={"a.Pod": {"description": "x" * 10_000}},
    ),
    "many media types": with_paths(
        {f"/api/v1/{i}": {"get": {"responses": OK}} for i in range(50)},
        definitions={"a.Pod": {}},
        produces=[f"a/{i}" for i in range(1000)],
    ),
    "many media types for one schema": with_paths(
        {
            "/api/v1/": {
                "post": {"responses": {"200": {"description": "", "schema": {"description": "x" * 10_000}}}}
            }
        },
        produces=[f"a/{i}" for i in range(1000)],
    ),
    "references to every part of a schema": with_paths(
        {"/api/v1/": {"get": {"responses": OK}}},
        definitions={
            "a.Pod": {"allOf": [{"$ref": "#/definitions/D" + "/properties/a" * i} for i in range(1, 60)]},
            "D": NESTED,
        },
    ),
    "default that branches": with_paths(
        {"/api/v1/": {"get": {"responses": OK}}},
        definitions={
            "a.Pod": {"default": {}, "allOf": [{"$ref": "#/definitions/0"}]},
            **{str(i): {"allOf": [{"$ref": f"#/definitions/{i + 1}"}] * 2} for i in range(60)},
            "60": {},
        },
    ),
    "losses with long pointers": with_paths(
        {"/api/v1/" + "x" * 1000: {"get": {"responses": OK, **{f"f{i}": 1 for i in range(2000)}}}},
        definitions={"a.Pod": {}},
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_document_that_would_expand_is_refused(name: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(LimitExceeded):
            convert(BOMBS[name], limits=SMALL)
        assert tracemalloc.get_traced_memory()[1] < 40_000_000
    finally:
        tracemalloc.stop()


def nested(depth: int) -> Any:
    node: Any = {"type": "string"}
    for _ in range(depth):
        node = {"properties": {"a": node}}
    return node


def test_deep_document_is_refused_or_converted() -> None:
    document = with_paths({"/api/v1/": {"get": {"responses": OK}}}, definitions={"a.Pod": nested(80)})
    assert schemas(convert(document))["a.Pod"] == nested(80)
    for depth in (200, 3000, 100_000):
        deep = with_paths({"/api/v1/": {"get": {"responses": OK}}}, definitions={"a.Pod": nested(depth)})
        with pytest.raises(LimitExceeded):
            convert(deep)


@pytest.mark.parametrize("value", [{1: 2}, {"a": object()}, {"a": "\ud800"}, {"a": 2**70}])
def test_tree_that_no_json_holds_is_refused(value: Any) -> None:
    document = with_paths({"/api/v1/": {"get": {"responses": OK}}}, definitions={"a.Pod": {"x-a": value}})
    with pytest.raises(InvalidDocument) as refused:
        convert(document)
    assert refused.value.pointer == "/definitions/a.Pod"


def test_of_several_errors_the_first_by_name_is_reported() -> None:
    """Sets have another order in each process; replicas report the same."""
    names = [f"d{number:02}" for number in range(40)]
    properties = {name: {"$ref": f"#/definitions/{name}"} for name in names}
    document = copied(DOCUMENT)
    document["definitions"]["Meta"] = {"properties": properties}
    document["definitions"].update({name: {"properties": {"p": 1}} for name in reversed(names)})
    with pytest.raises(ConverterError) as refused:
        convert(document)
    assert refused.value.pointer == "/definitions/d00/properties/p"
