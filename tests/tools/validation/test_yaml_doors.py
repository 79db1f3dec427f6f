"""A manifest is read alike wherever it comes in: as a document (convert) and as a body (validate)."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmux_converters import ConverterError
from specmux_converters.go.text import Number
from specmux_converters.yaml import parse_yaml_stream
from specmux_tools.validation.decoding.body import BodyFormat, read
from specmux_tools.validation.decoding.yaml_reader import read_yaml
from specmux_tools.validation.errors import Undecodable

DOCUMENTS: list[str | bytes] = [
    "a: 1\na: 2\n",
    "x: &x {a: 1}\ny: {<<: *x, b: 2}\n",
    "x: &x {a: 1}\nz: &z {a: 2, c: 3}\ny: {<<: [*x, *z]}\n",
    "y: {<<: 1}\n",
    "x: &x {a: 1}\nz: &z {a: 2}\ny: {<<: *x, <<: *z}\n",
    "x: &x {a: 1}\ny: {a: 0, <<: *x}\n",
    "x: &x {a: 1}\ny: {<<: *x, a: 0}\n",
    "x: &x [{a: 1}]\ny: {<<: *x}\n",
    "y: {a: 0, <<: {a: 1}}\n",
    "a: 2001-01-01\n",
    "a: !!timestamp 2001-01-01\n",
    "a: !!timestamp then\n",
    "a: !!binary aGVsbG8=\n",
    "a: !!binary '%%%'\n",
    "a: !!int abc\n",
    "a: !!float 3\n",
    "a: !!str 3\n",
    "a: !!bool yes\n",
    "~: 1\n",
    "yes: 1\n",
    "0644: 1\n",
    "1.5: 1\n",
    ".inf: 1\n",
    "1e62: 1\n",
    "18446744073709551615: 1\n",
    "a: {9223372036854775808: {b: 9223372036854775808}}\n",
    "a: .inf\n",
    "a: .nan\n",
    "a: !foo bar\n",
    "a: !!set {x, y}\n",
    "? [a]\n: 1\n",
    "a: &a x\n*a : 1\n",
    "a: &a 1\nb: &a 2\nc: *a\n",
    "a: &a [*a]\n",
    "a: 123456789012345678901234567890\n",
    "a: 0x1F\n",
    "a: 1_000\n",
    "a: 1:30\n",
    "a: 0o17\n",
    "a: 0b101\n",
    "a: -0b1\n",
    "a: +0x1\n",
    "a: 1e3\n",
    "a: 1.0\n",
    "a: .5\n",
    "",
    "a:\t1\n",
    'a: "\\ud800"\n',
    "1: a\n'1': b\n",
    "yes: a\ntrue: b\n",
    "a: 1e-400\n",
    "a: 1e400\n",
    "!!int '1': a\n1: b\n",
    "a: ü\n".encode("utf-16"),
]


def as_document(text: str | bytes) -> Any:
    try:
        return (*parse_yaml_stream(encoded(text), is_manifest=True), None)[0]
    except ConverterError as error:
        return f"refused: {error.reason}"


def as_body(text: str | bytes) -> Any:
    try:
        return plain(read_yaml(encoded(text)).value)
    except Undecodable as error:
        return f"refused: {error.text}"


def encoded(text: str | bytes) -> bytes:
    return text if isinstance(text, bytes) else text.encode()


def plain(value: Any) -> Any:
    """Without the texts of numbers, which only messages repeat."""
    match value:
        case dict():
            return {key: plain(item) for key, item in value.items()}
        case list():
            return [plain(item) for item in value]
        case Number():
            return int(value.text) if value.text.lstrip("-").isdecimal() else float(value)
        case _:
            return value


def alike(text: str | bytes) -> None:
    document, body = as_document(text), as_body(text)
    if isinstance(document, str) and "not YAML" in document:
        assert str(body).startswith("refused: yaml: ")
    else:
        assert repr(by_key(document)) == repr(body), text


def by_key(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: by_key(value[key]) for key in sorted(value)}
    if isinstance(value, float) and value.is_integer() and not math.isinf(value):
        return int(value) if abs(value) < 1e21 else value
    return [by_key(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("text", DOCUMENTS)
def test_a_document_is_the_body_that_an_apiserver_reads(text: str | bytes) -> None:
    alike(text)


def test_a_list_is_no_object_at_either_door() -> None:
    assert as_document("- 1\n") == "refused: not a YAML mapping"
    with pytest.raises(Undecodable, match="cannot unmarshal array into Go value"):
        read(b"- 1\n", BodyFormat.YAML).type_meta()


@given(
    st.lists(st.text("0123456789+-._eExXoObBaAfF:TtZ yYnN~<>", max_size=12), min_size=1, max_size=3),
    st.sampled_from(["a: {}", "{}: 1", "- {}"]),
)
def test_scalars_are_alike(texts: list[str], form: str) -> None:
    for text in texts:
        alike("k:\n  " + form.format(text) + "\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1\n\ufeff", "refused: yaml: line 3: could not find expected ':'"),
        ("a: 1\n\ufeffb: 2\n", {"a": 1, "\ufeffb": 2}),
        ("\ufeffa: 1\n", {"a": 1}),
        ("a: |\n x\n\ufeff: \ue000\n", {"a": "x\n", "\ufeff": "\ue000"}),
        ("a:\n  - x\n\ufeff  y\n", "refused: yaml: line 4: could not find expected ':'"),
    ],
)
def test_a_byte_order_mark_within_the_text_is_text(text: str, said: Any) -> None:
    """go-yaml's is_bom looks at the first bytes of its buffer, wherever it stands."""
    assert as_body(text) == said
    alike(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("x: &x {a: 1}\ny: {a: 0, <<: *x}\n", {"a": 1}),
        ("x: &x {a: 1}\ny: {<<: *x, a: 0}\n", {"a": 0}),
        ("x: &x {a: 1}\nz: &z {a: 2}\ny: {<<: [*x, *z]}\n", {"a": 1}),
        ("x: &x {a: 1}\nz: &z {a: 2}\ny: {<<: *x, <<: *z}\n", {"a": 2}),
        ("'y': !!binary aGVsbG8=\n", "hello"),
        ("'y': 1.0\n", 1),
        ("'y': {1: a, '1': b}\n", {"1": "b"}),
    ],
)
def test_values_are_those_of_go_yaml_v2(text: str, value: Any) -> None:
    document = as_document(text)
    assert document.get("y", document.get("true")) == value
    alike(text)


def test_a_merge_repeats_the_keys_that_stand_before_it() -> None:
    text = "x: &x\n  a: 1\n  b: {c: 1, c: 2}\ny:\n  a: 0\n  <<: *x\nz: *x\n"
    duplicates = read_yaml(text.encode()).duplicates
    assert [(each.line, each.path, each.key) for each in duplicates] == [
        (3, ("x", "b", "c"), '"c"'),
        (3, ("true", "b", "c"), '"c"'),
        (2, ("true", "a"), '"a"'),
        (3, ("z", "b", "c"), '"c"'),
    ]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r"""a: "x\'y" """, "x'y"),
        (r"""a: "\\' \\/" """, r"\' \/"),
        (r"""a: x\/y\'z""", r"x\/y\'z"),
        (r"""a: '\/\'""", "\\/\\"),
        ("a: |\n \\/ \\'\n", "\\/ \\'\n"),
        (r"""a: "x\/y" """, "refused: yaml: found unknown escape character"),
        (r"""a: "\\\/" """, "refused: yaml: found unknown escape character"),
        ('b: 1\na: "x\n  \\/"', "refused: yaml: line 3: found unknown escape character"),
    ],
)
def test_escapes_are_those_of_go_yaml_v2(text: str, value: str) -> None:
    body = as_body(text)
    assert (body if isinstance(body, str) else body["a"]) == value
    alike(text)
