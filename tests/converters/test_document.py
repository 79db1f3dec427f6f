from __future__ import annotations

import hashlib
import json
import pickle
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

import specmux_converters.document
from shared_data import DATA, read
from specmux_converters import Limits, parse
from specmux_converters.document import canonical, canonical_pieces, content_hash
from specmux_converters.errors import InvalidDocument, LimitExceeded
from specmux_converters.json_text import with_characters
from specmux_converters.losses import Loss
from specmux_converters.recognise import recognise


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


ORDINARY_TEXTS = [
    (b'{"a":["\\u003c\\u0026\\u003E"]}\n', b'{"a":["<&>"]}'),
    (b'{\n  "\\u00e9": {\n    "a": [\n      1.5,\n      {}\n    ]\n  }\n}', None),
    (b'{"a":"\\u0000\\u001f\\b"}', b'{"a":"\\u0000\\u001f\\b"}'),
]


@pytest.mark.parametrize(("data", "characters"), ORDINARY_TEXTS)
def test_text_that_comes_out_the_same_is_not_counted(
    data: bytes, characters: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(specmux_converters.document, "count_strings", pytest.fail)
    assert parse(data) == json.loads(data)
    if characters is not None:
        assert with_characters(data.rstrip()) == characters


@pytest.mark.parametrize(
    ("text", "characters"),
    [
        (rb'{"\\u003c":1}', rb'{"\<":1}'),
        (rb'{"\\\u003c":1}', rb'{"\\<":1}'),
        (rb'{"\\u0062":"\u0022\u005c\ud83d\ude00"}', rb'{"\\u0062":"\u0022\u005c\ud83d\ude00"}'),
    ],
)
def test_only_what_stands_behind_no_backslash_becomes_a_character(text: bytes, characters: bytes) -> None:
    assert with_characters(text) == characters
    assert parse(text) == json.loads(text)


@pytest.mark.parametrize(
    "data",
    [
        b'{"a":1,"\\u0061":2}',
        b'{"<":1,"\\u003c":2}',
        b'{\n  "a": 1,\n  "a": 1\n}',
        rb'{"\\u003c":1,"\u005cu003c":1}',
        rb'{"\\u0062":1,"\u005cu0062":1}',
    ],
)
def test_equal_keys_behind_escapes(data: bytes) -> None:
    with pytest.raises(InvalidDocument, match="twice"):
        parse(data)


@pytest.mark.parametrize("innermost", [b"{}", b"[]"])
def test_an_empty_container_is_a_value_at_its_depth(innermost: bytes) -> None:
    """orjson counts it as a level, the limit does not: the two layouts must agree."""
    compact = nested(200).replace(b"1", innermost)
    for data in (compact, orjson.dumps(orjson.loads(compact), option=orjson.OPT_INDENT_2)):
        assert parse(data) == orjson.loads(compact)
    for data in (nested(201), orjson.dumps(orjson.loads(nested(201)), option=orjson.OPT_INDENT_2)):
        with pytest.raises(LimitExceeded):
            parse(data)


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


def written(node: Any, *, ascii_only: bool, layout: str, margin: str = "") -> str:
    """``layout`` is "compact" or "indented", as orjson writes it, or "odd"."""

    def inner(item: Any) -> str:
        return written(item, ascii_only=ascii_only, layout=layout, margin=margin + "  ")

    if isinstance(node, tuple):
        colon = {"compact": ":", "indented": ": ", "odd": " :"}[layout]
        members = [f"{json.dumps(k, ensure_ascii=ascii_only)}{colon}{inner(v)}" for k, v in node[1]]
        return enclosed("{", members, "}", layout, margin)
    if isinstance(node, list):
        return enclosed("[", [inner(item) for item in node], "]", layout, margin)
    return json.dumps(node, ensure_ascii=ascii_only)


def enclosed(start: str, items: list[str], end: str, layout: str, margin: str) -> str:
    if layout != "indented" or not items:
        return start + (", " if layout == "odd" else ",").join(items) + end
    lines = ",".join(f"\n{margin}  {item}" for item in items)
    return f"{start}{lines}\n{margin}{end}"


def has_equal_keys(node: Any) -> bool:
    if isinstance(node, tuple):
        keys = [key for key, _ in node[1]]
        return len(set(keys)) < len(keys) or any(has_equal_keys(value) for _, value in node[1])
    return isinstance(node, list) and any(map(has_equal_keys, node))


@given(
    st.lists(st.tuples(TEXT, PAIRS), max_size=4).map(lambda pairs: ("object", pairs)),
    st.booleans(),
    st.sampled_from(["compact", "indented", "odd"]),
)
def test_equal_keys_are_found_wherever_they_are(node: Any, ascii_only: bool, layout: str) -> None:
    text = written(node, ascii_only=ascii_only, layout=layout)
    if has_equal_keys(node):
        with pytest.raises(InvalidDocument) as refused:
            parse(text.encode())
        assert refused.value.reason == "the key is there twice"
        assert refused.value.pointer
    else:
        assert parse(text.encode()) == json.loads(text)


@given(
    value=st.recursive(
        st.none() | st.integers(-9, 9) | st.text(st.characters(codec="utf-8"), max_size=3),
        lambda inner: st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=3), inner, max_size=4),
    ).filter(lambda value: isinstance(value, dict))
)
def test_canonical_pieces_are_the_canonical_text(value: Any) -> None:
    assert b"".join(canonical_pieces(value)) == canonical(value)


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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b'{"a": {"maximum": 123456789012345678901234567890}}', ["/a/maximum"]),
        (b'{"a": [1, -123456789012345678901, "123456789012345678901"]}', ["/a/1"]),
        (b'{"a": 18446744073709551615, "b": 36893488147419103232}', []),
        (b'{"a": 123456789012345678901.0, "b": 1e30}', []),
        (b'{"a": [' + b"123456789012345678901, " * 9 + b"1]}", ["/a/0", "/a/1", "/a/2", ""]),
    ],
)
def test_integers_that_no_parser_keeps_are_reported(text: bytes, expected: list[str]) -> None:
    losses: list[Loss] = []
    parse(text, losses=losses)
    assert [(loss.pointer, loss.construct) for loss in losses] == [(place, "number") for place in expected]


def test_09_uint64_stays_in_json_and_more_is_reported() -> None:
    found = recognise(read(DATA / "defects/09-numbers.json"))
    assert [loss.pointer for loss in found.losses] == ["/definitions/A/maximum"]
    assert found.documents[0]["definitions"]["B"]["maximum"] == 2**64 - 1
