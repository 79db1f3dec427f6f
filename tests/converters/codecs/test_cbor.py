from __future__ import annotations

import contextlib
import math
import struct
from pathlib import Path
from typing import Any

import cbor2
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_data import DATA, files, load, needs
from specmux_converters.codecs import Fragments, cbor
from specmux_converters.document import Limits
from specmux_converters.errors import ConverterError, InvalidDocument, LimitExceeded, Unrepresentable

LIMITS = Limits()
TEXTS = st.text(st.characters(codec="utf-8"))
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | FLOATS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=25,
)


def exact(value: Any) -> Any:
    """``value`` such that == tells 1 from 1.0 and 0.0 from -0.0, and the order of keys does not count."""
    match value:
        case dict():
            return {key: exact(item) for key, item in value.items()}
        case list():
            return [exact(item) for item in value]
        case float():
            return ("float", struct.pack(">d", value))
    return (type(value), value)


@given(st.dictionaries(TEXTS, VALUES, max_size=6))
def test_a_document_comes_back_the_same_when_it_was_written(document: dict[str, Any]) -> None:
    assert exact(cbor.decode(cbor.encode(document), limits=LIMITS)) == exact(document)


@given(st.dictionaries(TEXTS, VALUES, max_size=6))
def test_bytes_are_those_of_cbor2s_canonical_encoder_when_written_in_parts(value: dict[str, Any]) -> None:
    for document in (value, {"components": {"schemas": {"A": value}}, "paths": {"/": {"get": value}}}):
        assert cbor.encode(document) == b"\xd9\xd9\xf7" + cbor2.dumps(document, canonical=True)


@given(st.dictionaries(TEXTS, VALUES, max_size=6), st.randoms(use_true_random=False))
def test_bytes_are_the_same_when_keys_come_in_another_order(document: dict[str, Any], random: Any) -> None:
    items = list(document.items())
    random.shuffle(items)
    assert cbor.encode(dict(items)) == cbor.encode(document)


@pytest.mark.parametrize("path", files(DATA / "k8s-pairs" / "1.35" / "v3", "**/*.json*"))
def test_bytes_are_one_deterministic_item_when_written_in_parts(path: Path) -> None:
    document = load(path)
    data = cbor.encode(document, fragments=Fragments())
    assert data == b"\xd9\xd9\xf7" + cbor2.dumps(document, canonical=True)
    assert exact(cbor.decode(data, limits=LIMITS)) == exact(document)


@pytest.mark.parametrize(
    ("document", "item"),
    [
        ({}, "a0"),
        ({"b": 1, "aa": 2, "a": 3}, "a3 6161 03 6162 01 626161 02"),
        ({"é": 1, "zz": 2, "z": 3}, "a3 617a 03 627a7a 02 62c3a9 01"),
        ({"a": [1.5, 0.1, 1.0, 100000.0, 65504.0, 1e300]}, None),
        ({"a": 2**63 - 1, "b": -(2**63)}, "a2 6161 1b7fffffffffffffff 6162 3b7fffffffffffffff"),
        ({"a": None, "b": "", "c": [], "d": {}}, "a4 6161 f6 6162 60 6163 80 6164 a0"),
        ({"paths": {"/b": {}, "/a": {"get": {"x": True}}}}, None),
    ],
)
def test_encoding_is_core_deterministic_when_written(document: dict[str, Any], item: str | None) -> None:
    expected = cbor2.dumps(document, canonical=True) if item is None else bytes.fromhex(item)
    assert cbor.encode(document) == b"\xd9\xd9\xf7" + expected


@pytest.mark.parametrize(
    ("value", "head"),
    [(1.0, "f93c00"), (1.5, "f93e00"), (-0.0, "f98000"), (1e5, "fa47c35000"), (0.1, "fb3fb999999999999a")],
)
def test_a_float_takes_its_shortest_form_and_stays_a_float_when_written(value: float, head: str) -> None:
    data = cbor.encode({"a": value})
    assert data.endswith(bytes.fromhex(head))
    assert exact(cbor.decode(data, limits=LIMITS)) == exact({"a": value})


@pytest.mark.parametrize("number", [2**63, 2**64 - 1, -(2**63) - 1, 2**64, 2**200])
def test_an_integer_beyond_int64_is_a_double_as_go_writes_it(number: int) -> None:
    document = {"components": {"schemas": {"A": {"maximum": number}}}}
    read = cbor.decode(cbor.encode(document), limits=LIMITS)
    assert exact(read["components"]["schemas"]["A"]["maximum"]) == exact(float(number))


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        ({"a": [math.nan]}, "/a/0"),
        ({"a": {"b": math.inf}}, "/a/b"),
        ({"a": 2**2000}, "/a"),
        ({"a": "\ud800"}, "/a"),
        ({"a": {1, 2}}, "/a"),
        ({"paths": {"/p": {"get": {"x": object()}}}}, "/paths/~1p/get/x"),
        ({1: 2}, ""),
    ],
)
def test_a_document_is_refused_with_its_place_when_cbor_has_no_form(document: Any, pointer: str) -> None:
    with pytest.raises(Unrepresentable) as refused:
        cbor.encode(document)
    assert refused.value.pointer == pointer


def test_a_document_is_refused_when_it_is_nested_beyond_all_bounds() -> None:
    schema: Any = {}
    for _ in range(50_000):
        schema = {"items": schema}
    with pytest.raises(Unrepresentable):
        cbor.encode({"a": schema})


def test_a_document_is_written_when_it_is_deeper_than_orjson_goes() -> None:
    value: Any = {}
    for _ in range(290):
        value = {"a": value}
    assert cbor.decode(cbor.encode(value), limits=Limits(max_depth=300)) == value


REFUSED = {
    "duplicate key": "a2 6161 01 6161 02",
    "duplicate key, as text and as bytes": "a2 6161 01 4161 02",
    "duplicate key, deeper": "a1 6162 81 a2 6161 01 4161 02",
    "key that is a number": "a1 01 02",
    "key that is null": "a1 f6 02",
    "key that is an array": "a1 8001 02",
    "invalid UTF-8": "61ff",
    "overlong UTF-8": "62c080",
    "surrogate in UTF-8": "63eda080",
    "byte string that is no text": "41ff",
    "tag: date": "c0 74323031332d30332d32315432303a30343a30305a",
    "tag: epoch": "c1 00",
    "tag: bignum": "c2 49 010000000000000000",
    "tag: decimal fraction": "c4 82 21 196ab3",
    "tag: base64": "d6 4161",
    "tag: shared": "d81c 80",
    "tag: cycle": "d81c 81 d81d 00",
    "tag: string reference": "d90100 80",
    "tag: set": "d90102 8101",
    "tag: self-described within": "81 d9d9f7 01",
    "tag: self-described twice": "d9d9f7 d9d9f7 01",
    "tag: unknown": "d9ffff 01",
    "undefined": "f7",
    "simple value": "f8ff",
    "simple value, low": "f0",
    "NaN": "f97e00",
    "infinity": "f97c00",
    "infinity, single": "faff800000",
    "infinity, double": "fb7ff0000000000000",
    "NaN within": "a1 6161 81 f97e01",
    "unsigned beyond int64": "1b8000000000000000",
    "negative beyond int64": "3b8000000000000000",
    "negative beyond int64, within": "81 3bffffffffffffffff",
    "trailing byte": "01 00",
    "trailing break": "80 ff",
    "empty": "",
    "tag alone": "d9d9f7",
    "cut short": "a2 6161 01",
    "cut in a text": "65 61",
    "length beyond the data": "5b7fffffffffffffff",
    "count beyond the data": "9b7fffffffffffffff",
    "count of a map beyond the data": "bb0000ffffffffffff",
    "reserved head": "1c",
    "break alone": "ff",
    "text in pieces of bytes": "7f 4161 ff",
}


@pytest.mark.parametrize("item", REFUSED.values(), ids=REFUSED)
def test_an_item_is_refused_when_it_is_not_plain_json_data(item: str) -> None:
    for before in (b"", b"\xd9\xd9\xf7", b"\x81"):
        with pytest.raises(InvalidDocument):
            cbor.decode_value(before + bytes.fromhex(item), limits=LIMITS)


@pytest.mark.parametrize(
    ("item", "value"),
    [
        ("4161", "a"),
        ("a1 4161 42c3a9", {"a": "é"}),
        ("bf 6161 9f 01 ff ff", {"a": [1]}),
        ("7f 6161 6162 ff", "ab"),
        ("5f 4161 4162 ff", "ab"),
        ("1b7fffffffffffffff", 2**63 - 1),
        ("3b7fffffffffffffff", -(2**63)),
        ("f93c00", 1.0),
        ("fb3ff0000000000000", 1.0),
        ("1800", 0),
        ("a2 6161 f6 6162 a0", {"a": None, "b": {}}),
        ("d9d9f7 80", []),
    ],
)
def test_an_item_is_taken_when_kubernetes_sends_such(item: str, value: Any) -> None:
    assert exact(cbor.decode_value(bytes.fromhex(item), limits=LIMITS)) == exact(value)


@pytest.mark.parametrize("head", [b"\x81", b"\xa1\x61a", b"\x9f", b"\xbf\x61a"])
def test_an_item_is_refused_when_it_is_nested_too_deeply(head: bytes) -> None:
    for levels in (LIMITS.max_depth + 1, 300_000):
        with pytest.raises(LimitExceeded):
            cbor.decode_value(head * levels + b"\x01", limits=LIMITS)


def test_bytes_are_refused_when_there_are_too_many() -> None:
    with pytest.raises(LimitExceeded):
        cbor.decode(b"\xa0" * 11, limits=Limits(max_bytes=10))


@pytest.mark.parametrize("data", [b"\x80", b"\x01", b"\x61a", b"\xf6"])
def test_an_item_is_no_document_when_it_is_no_map(data: bytes) -> None:
    with pytest.raises(InvalidDocument):
        cbor.decode(data, limits=LIMITS)


NOT_OF_JSON = frozenset(
    (
        *("1bffffffffffffffff", "3bffffffffffffffff", "c249010000000000000000", "c349010000000000000000"),
        *("f97c00", "f97e00", "f9fc00", "fa7f800000", "fa7fc00000", "faff800000"),
        *("fb7ff0000000000000", "fb7ff8000000000000", "fbfff0000000000000"),
        *("f7", "f0", "f818", "f8ff", "a201020304"),
        *("c074323031332d30332d32315432303a30343a30305a", "c11a514b67b0", "c1fb41d452d9ec200000"),
        *("d74401020304", "d818456449455446", "d82076687474703a2f2f7777772e6578616d706c652e636f6d"),
    )
)
"""Of the examples in RFC 8949 appendix A: integers beyond int64, tags, NaN and infinities, simple values,
keys that are no texts. (f818 is not even well-formed since RFC 8949.)"""


@needs("data/cbor-vectors")
def test_the_rfcs_examples_are_read_when_they_are_of_jsons_data_model() -> None:
    refused = set()
    for example in load(DATA / "cbor-vectors" / "appendix_a.json"):
        data = bytes.fromhex(example["hex"])
        try:
            value = cbor.decode_value(data, limits=LIMITS)
        except InvalidDocument:
            refused.add(example["hex"])
            continue
        if "decoded" in example:
            assert value == example["decoded"], example
        if example["roundtrip"] and not data.startswith(b"\x40") and isinstance(value, dict):
            assert cbor.encode(value) == cbor.SELF_DESCRIBED + data
    assert refused == NOT_OF_JSON


@given(st.binary(max_size=60))
def test_only_the_packages_errors_come_out_when_bytes_are_arbitrary(data: bytes) -> None:
    with contextlib.suppress(ConverterError):
        value = cbor.decode_value(data, limits=LIMITS)
        orjson.dumps(value)


@given(st.data())
def test_only_the_packages_errors_come_out_when_bytes_are_changed(data: Any) -> None:
    document = {"info": {"title": "t"}, "x": [1, -2, 0.5, None, True, "é" * 30], "y": {"a": {}, "b": []}}
    raw = bytearray(cbor.encode(document))
    for _ in range(data.draw(st.integers(1, 3))):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ConverterError):
        cbor.decode(bytes(raw), limits=LIMITS)


@pytest.mark.parametrize("length", [0, 1, 23, 24, 255, 256, 300, 65535, 65536])
def test_texts_and_maps_of_any_length_have_the_shortest_head(length: int) -> None:
    document: dict[str, Any] = {
        "info": {"title": "é" * length},
        "paths": {f"/{number}": {"get": {"operationId": "x" * length}} for number in range(min(length, 300))},
        "x" * length: "y",
    }
    plain = cbor2.dumps(document, canonical=True)
    assert cbor.encode(document) == cbor.SELF_DESCRIBED + plain


@pytest.mark.parametrize("length", range(0xC0, 0xC5))
def test_the_length_of_a_text_is_not_taken_for_a_number(length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cbor, "_walk", None)
    document = {"components": {"schemas": {"A": {"description": "N" * length, "x-a": [1.5, -7, 2**62]}}}}
    assert cbor.encode(document) == cbor.SELF_DESCRIBED + cbor2.dumps(document, canonical=True)
