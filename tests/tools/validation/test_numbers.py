"""Multiples, in the words of apiextensions-apiserver 0.37.2, recorded from its own code."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from data.compared import definition
from specmux_converters.crd import build
from specmux_tools.kinds import DocumentSet
from specmux_tools.validation import Validator

BEYOND = '<nil>: Invalid value: "": MultipleOf value must be of type integer (default format) in spec'


def errors(schema: dict[str, Any], value: Any, *, release: str | None = None) -> list[str]:
    made = build([definition(schema)])
    body = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "a"}, "spec": value}
    report = Validator(DocumentSet(made.documents), release=release).validate(orjson.dumps(body))
    return sorted(each.message for each in report.violations)


@pytest.mark.parametrize(
    ("kind", "factor", "value", "said"),
    [
        (
            "number",
            0,
            1.5,
            ["spec: Invalid value: 0: factor MultipleOf declared for spec must be positive: 0"],
        ),
        (
            "integer",
            0,
            7,
            ["spec: Invalid value: 0: factor MultipleOf declared for spec must be positive: 0"],
        ),
        (
            "integer",
            -2147483648,
            -2147483648,
            [
                "spec: Invalid value: -2147483648: factor MultipleOf declared for spec must be positive: "
                "-2147483648"
            ],
        ),
        (
            "number",
            -0.5,
            1.5,
            ["spec: Invalid value: -0.5: factor MultipleOf declared for spec must be positive: -0.5"],
        ),
        (
            "integer",
            -0.5,
            7,
            [BEYOND, "spec: Invalid value: -0.5: factor MultipleOf declared for spec must be positive: -0.5"],
        ),
        ("integer", 0.3, -2147483648, [BEYOND]),
        ("number", 0.1, 0.3, []),
        ("number", 0.1, 0.35, ["spec: Invalid value: 0.35: spec in body should be a multiple of 0.1"]),
        ("integer", 3, -9, []),
        ("integer", 3, -8, ["spec: Invalid value: -8: spec in body should be a multiple of 3"]),
    ],
)
def test_multiples_are_apiextensions(kind: str, factor: float, value: Any, said: list[str]) -> None:
    assert errors({"type": kind, "multipleOf": factor}, value) == said


def test_what_is_nearly_whole_below_zero_is_whole_from_1_37_on() -> None:
    """With swag v0.27: until then only above zero."""
    schema = {"type": "number", "multipleOf": 0.3}
    assert errors(schema, -2147483648.0) == []
    assert len(errors(schema, -2147483648.0, release="1.36")) == 1
    assert errors(schema, 2147483648.0) == errors(schema, 2147483648.0, release="1.36") == []


@pytest.mark.parametrize(
    ("text", "is_good"), [("078-05-1120", True), ("078 05 1120", True), ("078051120", False)]
)
def test_social_security_numbers_have_eleven_characters(text: str, is_good: bool) -> None:
    assert (errors({"type": "string", "format": "ssn"}, text) == []) is is_good


@pytest.mark.parametrize(
    ("text", "is_good"),
    [
        ("//:port/path", True),
        ("http://host:x/", False),
        ("http://us er@host/", False),
        ("http://<host>/", True),
        ('http://"/', True),
        ("http://[::1]:8/", True),
        ("http://[::1.2]/", False),
        ("http://[fe80::1%25en0]/", True),
        ("http://[fe80::1%25e|n]/", False),
        ("http://[fe80::1%25%7c]/", False),
    ],
)
def test_uris_are_those_of_gos_parser(text: str, is_good: bool) -> None:
    """Recorded of url.ParseRequestURI of Go 1.26, as the format is checked (govalidator, IsRequestURI)."""
    assert (errors({"type": "string", "format": "uri"}, text) == []) is is_good


@pytest.mark.parametrize(
    ("text", "is_good"),
    [
        ("a.b@example.com", True),
        ("N. (c (d)) M <a@b> (e)", True),
        ('"(" <a@[::1]>', True),
        ("group: N <a@b>;", True),
        ("group: a@b, c@d;", False),
        ('""a@b', False),
        ("a@[]", False),
        ("a@b (c", False),
        ("a..b@c", False),
    ],
)
def test_mail_addresses_are_those_of_gos_parser(text: str, is_good: bool) -> None:
    """Recorded of mail.ParseAddress of Go 1.26, as the format is checked (strfmt, IsEmail)."""
    assert (errors({"type": "string", "format": "email"}, text) == []) is is_good
