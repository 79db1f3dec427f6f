from __future__ import annotations

from typing import Any

import orjson
import pytest

from converters.codecs import go_reference
from specmux_converters.codecs.gnostic_any_writer import write_yaml

RECORDED = [orjson.loads(line) for line in go_reference.YAML_RECORD.read_bytes().splitlines()]


def test_text_is_that_of_go_yaml_when_it_is_recorded() -> None:
    assert len(RECORDED) >= 400
    assert [(value, write_yaml(value)) for value, _ in RECORDED] == [
        (value, text) for value, text in RECORDED
    ]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("y", "y\n"),
        ("on", "on\n"),
        ("true", '"true"\n'),
        ("", '""\n'),
        ("~", '"~"\n'),
        ("1e3", '"1e3"\n'),
        ("2020-01-01", '"2020-01-01"\n'),
        ("2020-13-01", "2020-13-01\n"),
        ("a: b", "'a: b'\n"),
        ("it's: b", "'it''s: b'\n"),
        ("a\tb", '"a\\tb"\n'),
        ("\U0001f600", '"\\U0001F600"\n'),
        ("a\nb", "|-\n    a\n    b\n"),
        ("a\nb\n", "|\n    a\n    b\n"),
        ("a\n\n", "|+\n    a\n\n"),
        ("a \nb", '"a \\nb"\n'),
        ([], "[]\n"),
        ({}, "{}\n"),
        ([[1], {"a": [True]}], "- - 1\n- a:\n    - true\n"),
        ({"a": {"b": ["c", None]}}, "a:\n    b:\n        - c\n        - null\n"),
        ([{"a": {"b": 1}}], "- a:\n    b: 1\n"),
        ({"k" * 129: {"a": 1}}, "? " + "k" * 129 + "\n:   a: 1\n"),
        ({"a\nb": "c"}, "? |-\n    a\n    b\n: c\n"),
        (" a" * 100, "'" + " a" * 100 + "'\n"),
    ],
)
def test_a_value_is_in_go_yamls_style_when_written(value: Any, text: str) -> None:
    assert write_yaml(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "1.0"),
        (0.5, "0.5"),
        (-0.0, "-0.0"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (1e16, "10000000000000000.0"),
        (1e20, "100000000000000000000"),
        (-float(2**63), "-9223372036854776000"),
        (1.5e21, "1.5e+21"),
        (-1e300, "-1e+300"),
    ],
)
def test_a_float_has_its_most_likely_text_when_written(value: float, text: str) -> None:
    assert write_yaml(value) == text + "\n"
    assert float(text) == value


@pytest.mark.parametrize("value", [float("nan"), float("inf"), b"a", object(), {1, 2}])
def test_type_error_is_raised_when_json_has_no_such_value(value: Any) -> None:
    with pytest.raises(TypeError):
        write_yaml(value)
