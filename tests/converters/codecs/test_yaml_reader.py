from __future__ import annotations

import contextlib
import re
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from converters.codecs import go_reference
from specmux_converters.codecs.gnostic_any_writer import write_yaml
from specmux_converters.codecs.protobuf_reader import read_yaml
from specmux_converters.errors import ConverterError, InvalidDocument, LimitExceeded

TEXTS = st.text(st.characters(codec="utf-8"))
NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


def test_go_yamls_text_is_the_value_again_when_read() -> None:
    recorded = [orjson.loads(line) for line in go_reference.YAML_RECORD.read_bytes().splitlines()]
    different = [value for value, text in recorded if _try(text) != value]
    # A literal in a sequence of go-yaml's has the hint 4 where it is indented by 2: not even Go can read it.
    assert len(different) <= 1


def _try(text: str) -> Any:
    try:
        return read_yaml(text, max_depth=100)
    except InvalidDocument:
        return InvalidDocument


@given(VALUES)
def test_a_value_comes_back_when_it_was_written(value: Any) -> None:
    text = write_yaml(value)
    # Nor can Go, or libyaml, read back a literal that begins with a tab.
    if "|4" not in text and not re.search(r"\|[-+]?\n *\t", text):
        assert read_yaml(text, max_depth=100) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("on\n", "on"),
        ("yes\n", "yes"),
        ("0x1F\n", 31),
        ("017\n", 15),
        ("1_000\n", 1000),
        ("1:30\n", "1:30"),
        ("2020-01-01\n", "2020-01-01"),
        ('"1"\n', "1"),
        ("18446744073709551616\n", 1.8446744073709552e19),
        ("{a: [1, .5]}\n", {"a": [1, 0.5]}),
        ("<<: a\n", {"<<": "a"}),
        ("= : =\n", {"=": "="}),
    ],
)
def test_plain_text_means_what_it_means_to_go_yaml_when_read(text: str, value: Any) -> None:
    assert read_yaml(text, max_depth=10) == value


REFUSED = [
    "&a [*a]",
    "- &a b\n- *a",
    "!!python/object:os.system x",
    "!!int '1'",
    "a: b: c",
    "[",
    "a\n---\nb",
    "a: 1\na: 2",
    "%YAML 1.1\n---\na",
    "\ufeff%TAG ! a\n---\na",
    "# \r%TAG ! a\n---\na",
]


@pytest.mark.parametrize("text", [*REFUSED, "{[a]: b}", "\0", ".nan", "- .inf"])
def test_text_is_refused_when_it_is_not_plain_data(text: str) -> None:
    with pytest.raises(InvalidDocument):
        read_yaml(text, max_depth=10)


@pytest.mark.parametrize("text", ["[" * 100, "[" * 100_000, "- " * 1000 + "a", "{a: " * 5000, "? " * 3000])
def test_text_is_refused_soon_when_it_is_nested_too_deeply(text: str) -> None:
    with pytest.raises((LimitExceeded, InvalidDocument)):
        read_yaml(text, max_depth=50)


def test_text_is_refused_soon_when_it_has_many_directives() -> None:
    with pytest.raises(InvalidDocument, match="directive"):
        read_yaml("".join(f"%TAG !{n}! a\n" for n in range(300_000)) + "---\na", max_depth=20)


@pytest.mark.parametrize("text", ["%TAG", "a\n%TAG ! a\n", "a\u2028%YAML", "50 %", "\n%TAG"])
def test_text_is_no_directive_when_it_is_in_a_value(text: str) -> None:
    for value in (text, {"a": text}, {text: "a"}, {"a": [{"b": "%TAG"}]}):
        assert read_yaml(write_yaml(value), max_depth=20) == value


@given(st.text(alphabet="ab:-?[]{}&*!|>'\"%@ \n\t#,~1.e+_\u2028\x85", max_size=60))
def test_only_the_packages_errors_come_out_when_the_text_is_arbitrary(text: str) -> None:
    with contextlib.suppress(ConverterError):
        read_yaml(text, max_depth=20)
