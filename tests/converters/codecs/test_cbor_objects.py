"""Objects in CBOR as Kubernetes reads them: recorded answers of go_cbor_objects.txt, and fixtures."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cbor2
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_data import DATA
from specmux_converters.codecs.object_cbor import decode_object, encode_object, without_bytes
from specmux_converters.document import Limits
from specmux_converters.errors import ConverterError, Unrepresentable

GO_WROTE = "d9d9f7a44166f93e00416e24417a83f5f642c3a9446b696e6446536563726574"
RECORDED = [
    orjson.loads(line) for line in (Path(__file__).parent / "go_cbor_objects.jsonl").read_bytes().splitlines()
]
SECRET = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x"}, "data": {"a": "aGVsbG8="}}


def test_values_and_verdicts_are_those_of_go(tally: Callable[[str, int], None]) -> None:
    wrong = []
    for case in RECORDED:
        try:
            found: Any = decode_object(bytes.fromhex(case["cbor"]), limits=Limits())
        except ConverterError as error:
            if "error" not in case:
                wrong.append(f"{case['cbor']}: {error}, not {case['value']!r}")
            continue
        if "error" in case or not same(without_bytes(found), case["value"]):
            wrong.append(f"{case['cbor']}: {found!r}, not {case}")
    tally("CBOR objects, recorded", len(RECORDED))
    assert not wrong, "\n".join(wrong)


def same(found: Any, expected: Any) -> bool:
    """Of JSON: a whole double may be written as an integer."""
    if isinstance(found, dict) and isinstance(expected, dict):
        return found.keys() == expected.keys() and all(same(found[key], expected[key]) for key in found)
    if isinstance(found, list) and isinstance(expected, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(found, float) and not isinstance(expected, bool):
        return isinstance(expected, int | float) and found == float(expected)
    return type(found) is type(expected) and bool(found == expected)


@pytest.mark.parametrize("name", ["secret-client-go", "secret-go034", "secret-tag22", "secret-text"])
def test_secrets_that_clients_write(name: str) -> None:
    data = (DATA / "defects/cbor" / f"{name}.cbor").read_bytes()
    assert decode_object(data, limits=Limits()) == SECRET


def test_bytes_that_are_not_utf_8_come_back_when_written() -> None:
    """As KEP-4222 has it: Go strings that are not valid UTF-8 are roundtripped."""
    names = bytes.fromhex("d9d9f7a241fe0141ff43f09f98")
    found = decode_object(names, limits=Limits())
    assert len(found) == 2
    assert encode_object(found) == names
    with pytest.raises(Unrepresentable, match="differ only in bytes"):
        without_bytes(found)
    assert without_bytes(decode_object(bytes.fromhex("43f09f98"), limits=Limits())) == "\ufffd" * 3


def test_objects_are_written_as_apimachinery_does() -> None:
    """Of a generic object with an integer, a double, a text: the bytes of direct.Marshal, v0.37.2."""
    value = {"kind": "Secret", "n": -5, "f": 1.5, "z": [True, None, "é"]}
    assert encode_object(value).hex() == GO_WROTE


@pytest.mark.parametrize("value", [2**1024, float("nan"), "\ud800", b"x", {"a": object()}])
def test_values_that_are_not_of_json_are_not_written(value: Any) -> None:
    with pytest.raises(Unrepresentable):
        encode_object(value)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
)


@given(value=JSON_VALUES)
def test_what_is_json_comes_back_from_either_reader(value: Any) -> None:
    written = cbor2.dumps(value)
    assert decode_object(written, limits=Limits()) == value
    assert decode_object(cbor2.dumps(cbor2.CBORTag(1000, value)), limits=Limits()) == value
    assert decode_object(encode_object(value), limits=Limits()) == value


@given(data=st.binary(max_size=60))
def test_no_bytes_break_it(data: bytes) -> None:
    with contextlib.suppress(ConverterError):
        orjson.dumps(without_bytes(decode_object(b"\xd9\xd9\xf7" + data, limits=Limits())))
