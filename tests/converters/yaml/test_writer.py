"""YAML that readers of 1.1 (PyYAML), of 1.2 (ours) and Go's take for the same."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from specmux_converters.document import Document
from specmux_converters.errors import LimitExceeded
from specmux_converters.yaml import parse_yaml_stream, to_yaml

TAKEN_BY_PYYAML = [
    "on",
    "off",
    "yes",
    "Yes",
    "NO",
    "true",
    "null",
    "~",
    "=",
    "<<",
    "0644",
    "1_000",
    "1:30",
    "2001-01-01",
    ".5",
    "1e3",
    "0o7",
    "0x1F",
    "0b1",
    ".inf",
    "+1",
    "-",
    "---",
    "?",
]
TAKEN_BY_GO = [
    "y",
    "Y",
    "n",
    "N",
    "+0X1",
    "0X1F",
    "-0b1",
    "0B1",
    "0O7",
    "1_e3",
    "-_1",
    ".1_0",
    "0_.1",
    "2001-1-1",
    "2001-1-1T1:2:3Z",
    "1e3",
    "1.e+3",
    "123456789012345678901",
]
"""Each is a boolean, a number or a time to sigs.k8s.io/yaml, yaml.v2 or yaml.v3 where it has no quotes."""
AWKWARD = [
    "",
    " ",
    "a ",
    " a",
    "a\tb",
    "#",
    "a #b",
    "a: b",
    "a\nb",
    " a\n\n b \n",
    "\0",
    "\x85",
    "a\x85b",
    "\u2028",
    "a\u2028b",
    "a\u2029b",
    "\ufeff",
]
NUMBERS = [-0.0, 0, 2**64 - 1, -(2**63), 1e22, 5e-324, 1e300, 0.1]


def read_back(document: Document) -> list[str]:
    """Told apart by their texts: -0.0 equals 0, and true equals 1."""
    text = to_yaml(document)
    return [repr(document), repr(yaml.safe_load(text)), repr(parse_yaml_stream(text)[0])]


def is_same(document: Document) -> bool:
    return len(set(read_back(document))) == 1


@pytest.mark.parametrize("text", TAKEN_BY_GO)
def test_what_go_takes_for_something_else_is_quoted(text: str) -> None:
    assert to_yaml({text: [text]}) == f'"{text}":\n- "{text}"\n'.encode()


@pytest.mark.parametrize("text", [*TAKEN_BY_PYYAML, *TAKEN_BY_GO, *AWKWARD, "x" * 200, "x " * 200])
def test_texts_are_read_back(text: str) -> None:
    assert is_same({text: [text, {text: text}]})


def test_words_stay_without_quotes() -> None:
    assert to_yaml({"type": "string", "$ref": "#/a"}) == b"type: string\n$ref: '#/a'\n"


@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_are_read_back(number: Any) -> None:
    assert is_same({"a": number})


@given(
    st.dictionaries(st.text(), st.text() | st.floats(allow_nan=False, allow_infinity=False) | st.booleans())
)
def test_any_texts_and_numbers_are_read_back(document: Document) -> None:
    assert is_same(document)


def test_what_is_too_deep_is_refused() -> None:
    nest: Any = {}
    for _ in range(100_000):
        nest = {"a": nest}
    with pytest.raises(LimitExceeded):
        to_yaml(nest)


def test_shared_values_are_written_out() -> None:
    shared = {"a": 1}
    assert yaml.safe_load(to_yaml({"x": shared, "y": shared})) == orjson.loads(b'{"x":{"a":1},"y":{"a":1}}')
