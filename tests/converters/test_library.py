"""The package as its users import and call it."""

from __future__ import annotations

import pickle
import subprocess
import sys
from typing import Any

import pytest

import specmux_converters
from specmux_converters import ConverterError, Grade, convert, convert_whole, merge
from specmux_converters.errors import InvalidArgument, InvalidDocument

SWAGGER = b'{"swagger": "2.0", "info": {"title": "t", "version": "1"}, "paths": {"/api/v1/a": {}}}'
YAML = "swagger: '2.0'\ninfo: {title: t, version: '1'}\npaths:\n  /api/v1/a: {}\n"
PARSED = {"swagger": "2.0", "info": {"title": "t", "version": "1"}, "paths": {"/api/v1/a": {}}}


@pytest.mark.parametrize("given", [SWAGGER, SWAGGER.decode(), YAML, YAML.encode(), PARSED])
def test_a_document_is_taken_in_any_form(given: Any) -> None:
    expected = convert(PARSED)
    assert convert(given).json("api/v1") == expected.json("api/v1")  # type: ignore[arg-type]
    assert convert_whole(given).document == convert_whole(PARSED).document


def test_what_reading_loses_is_among_the_losses() -> None:
    text = SWAGGER.replace(b'"paths"', b'"x-n": 123456789012345678901234567890, "paths"')
    (loss,) = convert(text).losses
    assert (loss.pointer, loss.grade) == ("/x-n", Grade.LOSS)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: convert(5), "as a dict, bytes or text, not as int"),  # type: ignore[arg-type]
        (lambda: convert([PARSED]), "not as list"),  # type: ignore[arg-type]
        (lambda: convert(PARSED, profile="x"), "'x' is not one of 'kubernetes', 'oas'"),  # type: ignore[arg-type]
        (lambda: convert_whole(PARSED, profile=None), "None is not one of"),  # type: ignore[arg-type]
        (lambda: merge([PARSED]), "a mapping of group-versions"),  # type: ignore[arg-type]
    ],
)
def test_a_wrong_argument_is_told(call: Any, words: str) -> None:
    with pytest.raises(InvalidArgument, match=words) as refused:
        call()
    assert isinstance(refused.value, ValueError)
    assert isinstance(refused.value, ConverterError)
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)


@pytest.mark.parametrize("given", [b'{"openapi": "3.0.0"}', "", "a: 1", b"\xff"])
def test_what_is_no_swagger_is_refused(given: Any) -> None:
    with pytest.raises(InvalidDocument):
        convert(given)


def test_all_that_is_documented_is_in_the_root() -> None:
    others = (
        "GroupVersion",
        "MergeResult",
        "Envelope",
        "open_envelope",
        "WholeConversion",
        "canonical",
        "content_hash",
    )
    for name in (*specmux_converters.__all__, *others):
        assert getattr(specmux_converters, name) is not None
    with pytest.raises(AttributeError):
        _ = specmux_converters.nothing


def test_the_root_imports_nothing_by_itself() -> None:
    program = "import sys, specmux_converters; print('yaml' in sys.modules or 'cbor2' in sys.modules)"
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout == "False\n"
