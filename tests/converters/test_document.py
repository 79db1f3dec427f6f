from __future__ import annotations

import hashlib
import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmux_converters import Limits, parse
from specmux_converters.document import canonical, content_hash
from specmux_converters.errors import InvalidDocument, LimitExceeded


@pytest.mark.parametrize(
    ("data", "pointer", "words"),
    [
        (b"", "", "empty"),
        (b"[]", "", "not a JSON object"),
        (b"{} x", "", "unexpected content"),
        (b"\xff", "", "UTF-8"),
        (b"\xef\xbb\xbf{}", "", "byte order mark"),
        (b'{"a":[1,{"b":1e400}]}', "/a/1/b", "infinity"),
        (b'{"a":[[],[],-1e999]}', "/a/2", "infinity"),
        (b'{"a":NaN}', "/a", "unexpected"),
        (b'{"a":{"b":"\\ud800"}}', "/a/b", "surrogate"),
        (b'{"a":{"b":1,"b":2}}', "/a/b", "twice"),
        (b'{"a~/":[0,{"b":1,"b":2}]}', "/a~0~1/1/b", "twice"),
        (b'{"a":1,\n"\\u0061" :2}', "/a", "twice"),
        (b'{"a\\\\":1,"a\\\\":2}', "/a\\", "twice"),
        (b'{"a":{},"a":{}}', "/a", "twice"),
        (b'{"a":1,}', "/a", "comma"),
        (b'{"a":[1,2', "/a/1", "end of data"),
        (b'{"a":"b":1}', "/a", "unexpected"),
        (b'{"a":]}', "/a", "unexpected"),
    ],
)
def test_refused_with_a_pointer(data: bytes, pointer: str, words: str) -> None:
    with pytest.raises(InvalidDocument) as refused:
        parse(data)
    assert refused.value.pointer == pointer
    assert words in refused.value.reason


def nested(depth: int) -> bytes:
    return b'{"a":' * (depth - 1) + b'{"a":1}' + b"}" * (depth - 1)


@pytest.mark.parametrize("depth", [201, 254, 255, 1000, 2000, 100_000])
def test_too_deep(depth: int) -> None:
    parse(nested(200))
    with pytest.raises(LimitExceeded) as refused:
        parse(nested(depth))
    assert refused.value.pointer.startswith("/a/a/a")
    assert len(str(refused.value)) < 1000


def test_depth_limit_of_the_caller() -> None:
    parse(nested(3), limits=Limits(max_depth=3))
    with pytest.raises(LimitExceeded):
        parse(nested(4), limits=Limits(max_depth=3))
    parse(b'{"a":"\\n          {{{{"}', limits=Limits(max_depth=1))


def test_too_large() -> None:
    with pytest.raises(LimitExceeded):
        parse(b'{"a":1}', limits=Limits(max_bytes=6))


@pytest.mark.parametrize(
    "text",
    ['{"x":":"}', '{"a":"\\":","b":"\\u0022:"}', '{"a\\\\":"\\\\\\""}', '{"a" : [ {"a":1}, {"a":2} ]}'],
)
def test_text_without_equal_keys_is_read(text: str) -> None:
    assert parse(text.encode()) == json.loads(text)


TEXT = st.text(st.sampled_from('ab"\\:{}[], \n\u2028é'), max_size=4)
PAIRS = st.recursive(
    TEXT | st.integers(0, 9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(st.tuples(TEXT, inner), max_size=3).map(lambda p: ("object", p))
    ),
    max_leaves=12,
)


def written(node: Any, *, ascii_only: bool) -> str:
    if isinstance(node, tuple):
        members = (
            f"{json.dumps(k, ensure_ascii=ascii_only)} :{written(v, ascii_only=ascii_only)}"
            for k, v in node[1]
        )
        return "{" + ",".join(members) + "}"
    if isinstance(node, list):
        return "[" + ", ".join(written(item, ascii_only=ascii_only) for item in node) + "]"
    return json.dumps(node, ensure_ascii=ascii_only)


def has_equal_keys(node: Any) -> bool:
    if isinstance(node, tuple):
        keys = [key for key, _ in node[1]]
        return len(set(keys)) < len(keys) or any(has_equal_keys(value) for _, value in node[1])
    return isinstance(node, list) and any(map(has_equal_keys, node))


@given(st.lists(st.tuples(TEXT, PAIRS), max_size=4).map(lambda pairs: ("object", pairs)), st.booleans())
def test_equal_keys_are_found_wherever_they_are(node: Any, ascii_only: bool) -> None:
    text = written(node, ascii_only=ascii_only)
    if has_equal_keys(node):
        with pytest.raises(InvalidDocument) as refused:
            parse(text.encode())
        assert refused.value.reason == "the key is there twice"
        assert refused.value.pointer
    else:
        assert parse(text.encode()) == json.loads(text)


def test_canonical_text_and_its_hash() -> None:
    text = canonical({"b": 1, "a": {"d": "é", "c": [2.0, None]}})
    assert text == '{"a":{"c":[2.0,null],"d":"é"},"b":1}'.encode()
    assert content_hash(text) == hashlib.sha512(text).hexdigest().upper()


def test_error_survives_a_process_pool_and_cuts_foreign_text() -> None:
    error = LimitExceeded("reason", pointer="/" + "x\n" * 500)
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), again.reason, again.pointer) == (LimitExceeded, "reason", error.pointer)
    assert "\n" not in str(error)
    assert len(str(error)) < 700
