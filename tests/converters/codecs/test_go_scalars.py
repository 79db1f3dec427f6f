from __future__ import annotations

import pytest

from specmux_converters.go.scalars import is_plain_string, read_plain

NUMBERS: dict[str, int | float] = {
    "0": 0,
    "-1": -1,
    "+12": 12,
    "1_000": 1000,
    "0x1F": 31,
    "-0x1f": -31,
    "0o17": 15,
    "017": 15,
    "0b101": 5,
    "0b-101": -5,
    "0_o+1_7": 15,
    "0xffffffffffffffff": 2**64 - 1,
    "+0x7fffffffffffffff": 2**63 - 1,
    "+18446744073709551615": float(2**64 - 1),
    "08": 8.0,
    "1.": 1.0,
    ".5": 0.5,
    "1e3": 1000.0,
    "-1.5E-3": -0.0015,
    ".1_5": 0.15,
    "18446744073709551615": 2**64 - 1,
    "18446744073709551616": float(2**64),
    "-9223372036854775808": -(2**63),
}
TEXTS = (
    *("y", "n", "yes", "on", "off", "=", "<<", "1:30", "1.2.3", "0x", "0b2", "1e", "e1", "+", "-", ".", ".."),
    *("1e400", "_1", "._5", "0o8x", "1 2", "tRUE", "nULL", "2020-13-01", "2020-02-30", "2020-01-01T00:00:00"),
    *("1-1-2020", "1,5", "+0xffffffffffffffff", "-0b-1", "0B+1", "0o+8", "2001-12-14T21:59:43+25:00"),
    "2001-12-14T21:59:43+00:61",
)
TIMESTAMPS = (
    *("2020-01-01", "2020-2-29", "2001-12-14T21:59:43Z", "2001-12-14t21:59:43.10+05:00"),
    *("2001-12-14 21:59:43.5", "2001-12-14   21:59:43", "2001-12-14T21:59:43-24:60"),
)


@pytest.mark.parametrize("text", NUMBERS)
def test_a_number_is_read_and_needs_quotes_when_it_is_a_string(text: str) -> None:
    value = read_plain(text)
    assert value == NUMBERS[text] and type(value) is type(NUMBERS[text])
    assert not is_plain_string(text)


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_needs_no_quotes_when_go_yaml_would_not_take_it_for_more(text: str) -> None:
    assert read_plain(text) == text
    assert is_plain_string(text)


@pytest.mark.parametrize("text", TIMESTAMPS)
def test_a_timestamp_stays_text_when_read_and_needs_quotes(text: str) -> None:
    assert read_plain(text) == text
    assert not is_plain_string(text)


@pytest.mark.parametrize(
    ("text", "value"), [("true", True), ("FALSE", False), ("~", None), ("Null", None), ("", None)]
)
def test_a_word_is_read_and_needs_quotes_when_it_is_a_string(text: str, value: object) -> None:
    assert read_plain(text) is value
    assert not is_plain_string(text)


@pytest.mark.parametrize(
    "text", ["1" * 100_000, "-" + "9" * 50_000, "0b" + "1" * 50_000, "0." + "1" * 50_000]
)
def test_a_long_number_is_no_error_when_it_is_beyond_all_bounds(text: str) -> None:
    read_plain(text)
