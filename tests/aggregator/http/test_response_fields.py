"""Header fields of backends, well-formed and not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmux_aggregator.http.messages import Coding
from specmux_aggregator.http.response_fields import (
    RETRY_AFTER_MAX,
    UnaskedCoding,
    coding,
    entity_tag,
    retry_after,
)
from specmux_converters.media_types import essence

NOW = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("application/json", "application/json"),
        ("Application/JSON; charset=utf-8", "application/json"),
        (" text/plain ;x", "text/plain"),
        ("", ""),
    ],
)
def test_media_type_is_lower_case_without_parameters(field: str, expected: str) -> None:
    assert essence(field) == expected


@pytest.mark.parametrize(
    ("field", "expected"),
    [("", Coding.IDENTITY), ("identity", Coding.IDENTITY), ("GZIP", Coding.GZIP), (" x-gzip", Coding.GZIP)],
)
def test_coding_is_one_that_was_asked_for(field: str, expected: Coding) -> None:
    assert coding(field) is expected


@pytest.mark.parametrize("field", ["br", "zstd", "gzip, gzip", "gzip, br", "deflate", "x" * 10_000, "\x00"])
def test_coding_is_refused_when_it_was_not_asked_for(field: str) -> None:
    with pytest.raises(UnaskedCoding) as refused:
        coding(field)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 300


@pytest.mark.parametrize("field", ['"x"', 'W/"x"', '""', '"A,B"'])
def test_entity_tag_is_kept_as_it_stands(field: str) -> None:
    assert entity_tag(field) == field


@pytest.mark.parametrize(
    "field", [None, "", "x", '"x', 'w/"x"', '"a"b"', '"a b"', '"\u00e4"', '"a"\n', '"' + "x" * 600 + '"']
)
def test_entity_tag_is_dropped_when_it_cannot_be_sent_back(field: str | None) -> None:
    assert entity_tag(field) is None


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("0", 0.0),
        (" 7 ", 7.0),
        ("99999999999999999999999999", RETRY_AFTER_MAX),
        ("Tue, 14 Nov 2023 22:14:20 GMT", 60.0),
        ("Tue, 14 Nov 2023 22:14:20 +0000", 60.0),
        ("Tue, 14 Nov 2023 22:13:00 GMT", 0.0),
        ("Tue, 14 Nov 2023 22:14:20 -0000", None),
        ("Tue, 14 Nov 2099 22:13:00 GMT", RETRY_AFTER_MAX),
        (None, None),
        ("", None),
        ("-1", None),
        ("1.5", None),
        ("soon", None),
        ("\u0661", None),
        ("Tue, 99 Nov 2023 99:99:99 GMT", None),
        ("1 Jan 2020 00:00:00 +99999999999999999999", None),
    ],
)
def test_retry_after_is_seconds_within_bounds(field: str | None, expected: float | None) -> None:
    assert retry_after(field, now=NOW) == expected


@given(st.text())
def test_retry_after_of_anything_is_within_bounds(field: str) -> None:
    wait = retry_after(field, now=NOW)
    assert wait is None or 0.0 <= wait <= RETRY_AFTER_MAX
