from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared_data import DATA, files
from specmux_converters.codecs import plain_json
from specmux_converters.document import Limits
from specmux_converters.errors import ConverterError, InvalidDocument, LimitExceeded, Unrepresentable

LIMITS = Limits()


def test_key_order_is_kept_when_a_document_passes_through() -> None:
    data = b'{"z":1,"a":{"y":[],"b":1.5},"m":"\xc3\xa9"}'
    assert plain_json.encode(plain_json.decode(data, limits=LIMITS)) == data


@given(
    st.dictionaries(st.text(st.characters(codec="utf-8")), st.integers(-(2**63), 2**64 - 1) | st.booleans())
)
def test_a_document_comes_back_when_it_was_written(document: dict[str, Any]) -> None:
    assert plain_json.decode(plain_json.encode(document), limits=LIMITS) == document


@pytest.mark.parametrize("path", files(DATA / "json-test-suite" / "test_parsing", "*.json"))
def test_a_text_of_the_suite_is_read_or_refused_as_it_asks(path: Path) -> None:
    """y_ must be read, n_ refused, i_ either; each as the value of a key, since a document is an object."""
    data = b'{"a":' + path.read_bytes() + b"}"
    verdict = path.name[0]
    try:
        plain_json.decode(data, limits=LIMITS)
    except ConverterError:
        assert verdict != "y" or "duplicated_key" in path.name
    else:
        assert verdict != "n"


@pytest.mark.parametrize(
    "data",
    [
        b'{"a":1,"a":1}',
        b'{"x":[{"b":{},"\\u0062":0}]}',
        b'{"a":1e400}',
        b'{"a":NaN}',
        b'{"a":"\\ud800"}',
        b'{"a":"\xff"}',
        b"\xef\xbb\xbf{}x",
        b"{}{}",
        b"[]",
        b"",
    ],
)
def test_a_text_is_refused_when_readers_would_disagree_on_it(data: bytes) -> None:
    with pytest.raises(InvalidDocument):
        plain_json.decode(data, limits=LIMITS)


def test_a_text_is_refused_when_it_is_nested_too_deeply() -> None:
    for levels in (LIMITS.max_depth + 1, 2000, 200_000):
        with pytest.raises(LimitExceeded):
            plain_json.decode(b'{"a":' * levels + b"1" + b"}" * levels, limits=LIMITS)


@pytest.mark.parametrize("value", [2**64, "\ud800", {1, 2}, object(), b"a", {1: 2}])
def test_a_document_is_refused_when_json_has_no_form(value: Any) -> None:
    with pytest.raises(Unrepresentable):
        plain_json.encode({"a": value})
