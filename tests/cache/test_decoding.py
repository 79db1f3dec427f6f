from __future__ import annotations

import copy
import json
import pickle

import cbor2
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmux_cache.http.media_types import CBOR, JSON, PROTOBUF
from specmux_cache.reading.decoding import check_document, decode, read_document

TREES = st.dictionaries(
    st.text(max_size=8),
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
        max_leaves=8,
    ),
    max_size=4,
)


@given(TREES)
def test_documents_when_in_either_format_are_the_same_tree(tree):
    assert read_document(orjson.dumps(tree), JSON) == tree
    assert read_document(b"\xd9\xd9\xf7" + cbor2.dumps(tree), CBOR) == tree


@pytest.mark.parametrize(
    "body",
    [
        cbor2.dumps({"a": 1}) + b"\x00",
        bytes.fromhex("a2616101616102"),
        bytes.fromhex("a10102"),
        bytes.fromhex("d81c81d81d00"),
        bytes.fromhex("a16161d81c81d81d00"),
        bytes.fromhex("a16161c11a514b67b0"),
        bytes.fromhex("a16161d9010081"),
        bytes.fromhex("a16161") + b"\x81" * 400 + b"\x00",
        bytes.fromhex("a16161f7"),
        bytes.fromhex("80"),
        b"",
    ],
    ids=[
        "trailing",
        "duplicate",
        "number key",
        "cycle",
        "shared",
        "date",
        "cut",
        "deep",
        "undefined",
        "array",
        "empty",
    ],
)
def test_cbor_when_it_is_not_as_kubernetes_writes_it(body):
    with pytest.raises(ValueError, match="document"):
        decode(body, CBOR)


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"a":NaN}', b"1"])
def test_json_when_it_is_no_document(body):
    with pytest.raises(ValueError, match="document"):
        check_document(body, JSON)


def test_document_when_nested_too_deeply_is_refused():
    with pytest.raises(ValueError, match="deep"):
        read_document(b'{"a":' * 300 + b"1" + b"}" * 300, JSON)


def test_protobuf_when_checked_is_only_looked_at():
    check_document(b"\x0a", PROTOBUF)
    with pytest.raises(ValueError, match="empty"):
        check_document(b"", PROTOBUF)


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.update(a=1),
        lambda d: d.pop("a"),
        lambda d: d.setdefault("b", 1),
        lambda d: d.__setitem__("b", 1),
        lambda d: d.__delitem__("a"),
        lambda d: d.__ior__({"b": 1}),
        lambda d: d["a"].append(1),
        lambda d: d["a"].sort(),
        lambda d: d["a"].__setitem__(0, 1),
        lambda d: d["a"].__iadd__([1]),
        lambda d: d["a"][0].clear(),
    ],
)
def test_document_when_somebody_would_change_it(change):
    document = read_document(b'{"a":[{"b":1}]}', JSON)
    with pytest.raises(TypeError, match="shared"):
        change(document)
    assert document == {"a": [{"b": 1}]}


def test_document_when_copied_is_an_ordinary_one():
    document = read_document(b'{"a":[{"b":1}]}', JSON)
    for own in (
        copy.deepcopy(document),
        pickle.loads(pickle.dumps(document)),
        json.loads(json.dumps(document)),
    ):
        own["a"][0]["b"] = 2
        assert type(own) is dict
    assert document["a"][0]["b"] == 1


@pytest.mark.parametrize("member", [b"[],", b"{},", b'{"a":1},', b"0,"])
def test_document_of_many_values_is_refused_before_it_is_parsed(member):
    with pytest.raises(ValueError, match="more than the 3000000 values"):
        check_document(b'{"x":[' + member * 3_000_001 + b"0]}", JSON)
