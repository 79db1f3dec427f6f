from __future__ import annotations

import pytest

from specmux_converters.go.text import Number
from specmux_tools.validation.decoding.json_reader import Repeats, read_json, read_plain
from specmux_tools.validation.errors import Undecodable


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", "unexpected end of JSON input"),
        ('{"a":', "unexpected end of JSON input"),
        ('{"a" 1}', "invalid character '1' after object key"),
        ('{"a":1 "b":2}', "invalid character '\"' after object key:value pair"),
        ("[1 2]", "invalid character '2' after array element"),
        ("{1:2}", "invalid character '1' looking for beginning of object key string"),
        ("nul", "unexpected end of JSON input"),
        ("nulx", "invalid character 'x' in literal null (expecting 'l')"),
        ("tRue", "invalid character 'R' in literal true (expecting 'r')"),
        ("-a", "invalid character 'a' in numeric literal"),
        ("1.x", "invalid character 'x' after decimal point in numeric literal"),
        ("1ex", "invalid character 'x' in exponent of numeric literal"),
        ("01", "invalid character '1' after top-level value"),
        ('"\\x"', "invalid character 'x' in string escape code"),
        ('"\\u12g4"', "invalid character 'g' in \\u hexadecimal character escape"),
        ('"a\tb"', "invalid character '\\t' in string literal"),
        ("NaN", "invalid character 'N' looking for beginning of value"),
        ("é", "invalid character 'Ã' looking for beginning of value"),
        ("{} {}", "invalid character '{' after top-level value"),
        ("'a'", "invalid character '\\'' looking for beginning of value"),
    ],
)
def test_what_is_not_json_is_told_in_the_words_of_go(text: str, error: str) -> None:
    with pytest.raises(Undecodable) as raised:
        read_json(text.encode())
    assert raised.value.text == error


def test_equal_keys_are_kept_in_order() -> None:
    value = read_json(b'{"a":1,"b":2,"a":3}')
    assert isinstance(value, Repeats)
    assert value == {"a": 3, "b": 2}
    assert value.pairs == [("a", 1), ("b", 2), ("a", 3)]


def test_numbers_keep_their_text() -> None:
    one, big, exponent, plain = read_json(b"[1.0, 123456789012345678901234567890, 1e3, 7]")
    assert [each.text for each in (one, big, exponent)] == ["1.0", "123456789012345678901234567890", "1e3"]
    assert plain == 7 and not isinstance(plain, Number)


@pytest.mark.parametrize(
    "text", ['{"a":1,"a":2}', '{"a":1e3}', '{"a":12345678901234567890}', "[]", "{", '{"a":"\\ud800"}']
)
def test_the_quick_way_leaves_what_is_unusual(text: str) -> None:
    assert read_plain(text.encode()) is None


def test_the_quick_way_reads_what_is_usual() -> None:
    assert read_plain(b' {"a": [1, 2.5, "e", null], "e2": {"b": true}}\n') == {
        "a": [1, 2.5, "e", None],
        "e2": {"b": True},
    }


@pytest.mark.parametrize(
    "text", [b"[" * 100_000, b'{"a":' * 5000 + b"1" + b"}" * 5000, b'[[{"a":' * 90 + b"[" * 9000]
)
def test_deep_texts_are_refused_at_once(text: bytes) -> None:
    with pytest.raises(Undecodable):
        read_json(text)
    assert read_plain(text) is None
