from __future__ import annotations

import calendar
from datetime import UTC
from email.utils import parsedate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmux_cache.http.caching import (
    AGE_MAX,
    directives,
    end_to_end,
    fields_from_text,
    fields_of,
    fields_to_text,
    http_date,
    join_values,
    list_members,
    seconds,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("max-age=3600", {"max-age": "3600"}),
        ("No-Store, MAX-AGE=1", {"no-store": "", "max-age": "1"}),
        ('ext="max-age=1, no-store", max-age=2', {"ext": "max-age=1, no-store", "max-age": "2"}),
        ("max-age=1, max-age=2", {"max-age": "1"}),
        ("max-age='5'", {"max-age": "'5'"}),
        ('max-age="7"', {"max-age": "7"}),
        (",, ,no-cache,", {"no-cache": ""}),
        ("", {}),
        ('broken="abc, no-store', {"broken": '"abc', "no-store": ""}),
    ],
)
def test_directives_when_written_in_every_way(value, expected):
    assert directives((("cache-control", value),)) == expected


def test_directives_when_the_reference_sends_two_fields():
    fields = (("cache-control", "no-cache, private"), ("cache-control", "public, immutable"))
    assert set(directives(fields)) == {"no-cache", "private", "public", "immutable"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0),
        ("007", 7),
        ("99999999999999999999999", AGE_MAX),
        ("-1", None),
        ("1.0", None),
        ("", None),
        ("²", None),
    ],
)
def test_seconds(text, expected):
    assert seconds(text) == expected


@pytest.mark.parametrize(
    ("text", "is_date"),
    [
        ("Sun, 06 Nov 1994 08:49:37 GMT", True),
        ("Sunday, 06-Nov-94 08:49:37 GMT", True),
        ("Sun Nov  6 08:49:37 1994", True),
        ("Sun, 21 Nov 2027 05:02:55 UTC", False),
        ("Sun, 06 Nov 1994 08:49:37 +0000", False),
        ("0", False),
        ("", False),
        (None, False),
    ],
)
def test_http_date(text, is_date):
    expected = calendar.timegm((1994, 11, 6, 8, 49, 37, 0, 0, 0)) if is_date else None
    assert http_date(text) == expected


@given(st.datetimes(timezones=st.just(UTC)))
def test_http_date_is_read_as_the_mail_library_reads_it(date):
    text = f"{date:%a, %d %b} {date.year:04} {date:%H:%M:%S} GMT"
    assert http_date(text) == calendar.timegm((*parsedate(text)[:6], 0, 0, 0))


def test_end_to_end_when_connection_names_fields():
    fields = fields_of(
        [("Connection", "a, Keep-Alive"), ("A", "1"), ("C", "3"), ("Set-Cookie", "s=1"), ("TE", "x")]
    )
    assert end_to_end(fields) == (("c", "3"),)


def test_joined_when_a_field_comes_twice():
    assert join_values((("vary", "A"), ("vary", "b")), "vary") == "A, b"
    assert list_members((("vary", "A"), ("vary", "b,,")), "vary") == ("a", "b")


@given(st.lists(st.tuples(st.text(max_size=9), st.text(max_size=30))))
def test_fields_when_written_and_read(pairs):
    fields = fields_of(pairs)
    assert fields_from_text(fields_to_text(fields)) == fields


@given(st.text(max_size=60))
def test_nothing_raises_when_a_field_is_anything(text):
    fields = (("cache-control", text),)
    directives(fields)
    http_date(text)
    seconds(text)
