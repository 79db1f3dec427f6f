"""Decoded JSON as Go prints it. What is expected is the output of fmt in Go 1.26."""

from __future__ import annotations

import pytest

from specmux_converters.go.text import format_typed, format_value


@pytest.mark.parametrize(
    ("value", "plain", "typed"),
    [
        ("a\tb\x01", "a\tb\x01", r'"a\tb\x01"'),
        ("é\u2028", "é\u2028", r'"é\u2028"'),
        (
            {"b": [1, None], "a": "x"},
            "map[a:x b:[1 <nil>]]",
            'map[string]interface {}{"a":"x", "b":[]interface {}{1, interface {}(nil)}}',
        ),
        (None, "<nil>", "<nil>"),
        (True, "true", "true"),
        (1e21, "1e+21", "1e+21"),
    ],
)
def test_values_are_printed_as_go_does(value: object, plain: str, typed: str) -> None:
    assert (format_value(value), format_typed(value)) == (plain, typed)
