from __future__ import annotations

import pytest

from specmux_tools.validation import Directive, InvalidDirective
from specmux_tools.validation.messages import parse_directive, warning_fields, warning_texts


@pytest.mark.parametrize(("text", "directive"), [("", Directive.WARN), ("Strict", Directive.STRICT)])
def test_no_directive_means_warn(text: str, directive: Directive) -> None:
    assert parse_directive(text) is directive


@pytest.mark.parametrize("text", ["strict", "x", "Warn "])
def test_another_directive_is_refused_as_by_an_apiserver(text: str) -> None:
    with pytest.raises(InvalidDirective) as raised:
        parse_directive(text)
    supported = 'supported values: "", "Ignore", "Strict", "Warn"'
    assert raised.value.text.endswith(f'fieldValidation: Unsupported value: "{text}": {supported}')


def test_warnings_are_said_once_and_without_control_characters() -> None:
    assert warning_fields(["a", "b\nc", "a", 'd"\\']) == ['299 - "a"', '299 - "d\\"\\\\"']


def test_too_many_warnings_are_cut_to_256_characters_each() -> None:
    fields = warning_fields([f"{number:02}" + "x" * 400 for number in range(40)])
    assert all(len(field) == len('299 - ""') + 256 for field in fields)
    assert len(fields) == 16


def test_each_line_of_yaml_s_one_error_is_a_warning() -> None:
    error = (
        'yaml: unmarshal errors:\n  line 7: key "a" already set in map\n  line 9: key "b" already set in map'
    )
    assert warning_texts([error, "x"]) == [
        'line 7: key "a" already set in map',
        'line 9: key "b" already set in map',
        "x",
    ]
