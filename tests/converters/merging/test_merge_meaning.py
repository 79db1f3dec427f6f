"""A merged document says what its inputs said: references on both sides are written out and compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sampling import examples
from shared_data import NATIVE, documents, load
from specmux_converters.group_versions import GroupVersion
from specmux_converters.losses import pointer_to
from specmux_converters.merging import MergeResult, merge

NAMES = ("A", "A_v2", "B", "a/b", "~1", "%41")
DEPTH = 5

names = st.sampled_from(NAMES)
refs = st.builds(lambda name: {"$ref": "#/components/schemas" + pointer_to(name)}, names)
leaves = st.one_of(
    refs,
    st.builds(lambda value: {"default": value}, st.sampled_from([0, 1, True, 1.0, -0.0, {"$ref": "#/x"}])),
)
schemas = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(lambda item: {"items": item}, inner),
        st.builds(lambda each: {"allOf": each}, st.lists(inner, max_size=2)),
        st.builds(lambda each: {"properties": each}, st.dictionaries(st.sampled_from(["$ref", "x"]), inner)),
    ),
    max_leaves=4,
)
components = st.fixed_dictionaries(
    {"schemas": st.fixed_dictionaries(dict.fromkeys(NAMES, schemas))},
)


def with_path(key: str, parts: Any) -> Any:
    uses = {"content": {"a/a": {"schema": {"$ref": "#/components/schemas/A"}}}, "description": ""}
    paths = {f"/{key}": {"get": {"operationId": "get", "responses": {"200": uses}}}}
    return {"openapi": "3.0.0", "info": {"title": "t", "version": "1"}, "paths": paths, "components": parts}


sets = st.dictionaries(st.sampled_from("abcd"), components, min_size=1).map(
    lambda made: {GroupVersion(key): with_path(key, parts) for key, parts in made.items()}
)


def written_out(node: Any, document: Any, depth: int = DEPTH) -> Any:
    """The node with references replaced by what they refer to, down to a depth, without ids of operations."""
    if isinstance(node, list):
        return [written_out(item, document, depth) for item in node]
    if not isinstance(node, dict):
        return node
    ref = node.get("$ref")
    if isinstance(ref, str):
        return written_out(referred(document, ref), document, depth - 1) if depth else "…"
    result = {}
    for key, value in node.items():
        if key in ("default", "example", "enum") or key[:2] == "x-":
            result[key] = value
        elif key == "properties":  # where "$ref" is a name like any other
            result[key] = {name: written_out(each, document, depth) for name, each in value.items()}
        elif key != "operationId":
            result[key] = written_out(value, document, depth)
    return result


def referred(document: Any, ref: str) -> Any:
    """Raises KeyError when it dangles."""
    node = document
    for token in ref.removeprefix("#/").split("/"):
        node = node[token.replace("~1", "/").replace("~0", "~")]
    return node


def text(node: Any) -> bytes:
    return orjson.dumps(node, option=orjson.OPT_SORT_KEYS)


def assert_whole(inputs: Mapping[GroupVersion, Any], merged: MergeResult) -> None:
    assert merged.conflicts == ()
    new = {(each.group_version, each.kind, each.name): each.new_name for each in merged.renamed}
    for key, document in inputs.items():
        for path, item in document["paths"].items():
            found = merged.document["paths"][path]
            assert text(written_out(found, merged.document)) == text(written_out(item, document)), path
        for name, node in document["components"]["schemas"].items():
            got = merged.document["components"]["schemas"][new.get((key, "schemas", name), name)]
            assert text(written_out(got, merged.document)) == text(written_out(node, document)), name


@examples(300)
@given(sets)
def test_hostile_sets_keep_their_meaning(inputs: Mapping[GroupVersion, Any]) -> None:
    merged = merge(inputs)
    assert_whole(inputs, merged)
    ids = [item["get"]["operationId"] for item in merged.document["paths"].values()]
    assert len(set(ids)) == len(ids) == len(inputs)


@examples(100)
@given(sets)
def test_order_of_documents_and_keys_is_nothing(inputs: Mapping[GroupVersion, Any]) -> None:
    def turned(node: Any) -> Any:
        if isinstance(node, dict):
            return {key: turned(value) for key, value in reversed(node.items())}
        return [turned(item) for item in node] if isinstance(node, list) else node

    merged, other = merge(inputs), merge(turned(inputs))
    assert text(other.document) == text(merged.document)
    assert (other.renamed, other.conflicts) == (merged.renamed, merged.conflicts)


@examples(100)
@given(components)
def test_equal_documents_share_everything(parts: Any) -> None:
    inputs = {GroupVersion(key): with_path(key, parts) for key in "abc"}
    merged = merge(inputs)
    assert merged.document["components"] == parts
    assert {each.kind for each in merged.renamed} == {"operationIds"}


@pytest.mark.long
@pytest.mark.parametrize("key", ["apis/apps/v1", "apis/batch/v1", "apis/policy/v1"])
def test_releases_of_one_group_version_keep_their_meaning(key: str) -> None:
    inputs = {}
    for release in NATIVE:
        if key not in documents(release):
            continue
        document = load(documents(release)[key])
        document["paths"] = {f"/{release}{path}": item for path, item in document["paths"].items()}
        inputs[GroupVersion(release)] = document
    if len(inputs) < 2:
        pytest.skip(f"fewer than two releases have {key}")
    merged = merge(inputs)
    assert len(merged.renamed) > 10
    conflicts = {each.pointer for each in merged.conflicts}
    assert conflicts <= {"/info"}
    assert_whole(inputs, MergeResult(merged.document, merged.renamed, ()))
