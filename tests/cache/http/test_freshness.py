from __future__ import annotations

from email.utils import formatdate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmux_cache.http.caching import (
    Answer,
    FreshnessOutcome,
    FreshnessRule,
    StoredHead,
    Tolerance,
    Use,
    age_of,
    conditions,
    first,
    freshen_head,
    head_to_store,
    is_storable,
    may_stand_in,
    outcome,
    selecting_of,
    selects,
    usage,
)
from specmux_cache.reading.entry_store import metadata_of, read_stored_head

NOW = 1_800_000_000.0
STRICT = Tolerance(stale_if_error=0.0)


def date(offset: float) -> str:
    return formatdate(NOW + offset, usegmt=True)


def held(*fields: tuple[str, str], received: float = 0.0) -> StoredHead:
    return StoredHead(fields, NOW + received, NOW + received, {})


def answer(status: int, *fields: tuple[str, str], body: bytes = b"") -> Answer:
    return Answer(status, fields, body, NOW, NOW)


@pytest.mark.parametrize(
    ("fields", "at", "expected"),
    [
        ([("cache-control", "max-age=60")], 59, Use.FRESH),
        ([("cache-control", "max-age=60")], 60, Use.ASK),
        ([("cache-control", "max-age=0")], 0, Use.ASK),
        ([("cache-control", "max-age=-5")], 0, Use.ASK),
        ([("cache-control", "max-age='60'")], 0, Use.ASK),
        ([("cache-control", "max-age=60, s-maxage=1")], 30, Use.FRESH),
        ([("cache-control", "no-cache, max-age=60")], 0, Use.ASK),
        ([("cache-control", "max-age=60"), ("age", "61")], 0, Use.ASK),
        ([("cache-control", "max-age=60"), ("age", "30"), ("date", date(0))], 29, Use.FRESH),
        ([("cache-control", "max-age=60"), ("age", "abc")], 0, Use.ASK),
        ([("cache-control", "max-age=60"), ("age", "0"), ("age", "0")], 0, Use.ASK),
        ([("cache-control", "max-age=60"), ("date", date(-61))], 0, Use.ASK),
        ([("cache-control", "max-age=0"), ("expires", date(99))], 0, Use.ASK),
        ([("expires", date(60)), ("date", date(0))], 59, Use.FRESH),
        ([("expires", date(60)), ("date", date(0))], 61, Use.ASK),
        ([("expires", date(60))], 59, Use.FRESH),
        ([("expires", "Sun, 21 Nov 2127 05:02:55 UTC")], 0, Use.ASK),
        ([("expires", "0")], 0, Use.ASK),
        ([("last-modified", date(-99999))], 0, Use.ASK),
        ([], 0, Use.ASK),
        ([("cache-control", "max-age=1, stale-while-revalidate=60")], 30, Use.STALE_WHILE_REVALIDATE),
        ([("cache-control", "max-age=1, stale-while-revalidate=60, must-revalidate")], 30, Use.ASK),
    ],
)
def test_usage_when_plain(fields, at, expected):
    assert usage(held(*fields), FreshnessRule.PLAIN, STRICT, now=NOW + at) is expected


@pytest.mark.parametrize(
    "fields",
    [
        [],
        [("cache-control", "no-cache, private"), ("cache-control", "public, immutable")],
        [("expires", "Sun, 21 Nov 2027 05:02:55 UTC")],
        [("cache-control", "max-age=0, must-revalidate")],
    ],
)
def test_usage_when_the_url_has_a_hash(fields):
    assert usage(held(*fields), FreshnessRule.HASHED, STRICT, now=NOW + 10**9) is Use.FRESH


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ((), FreshnessOutcome.STORE),
        (("no-cache, private", "public, immutable"), FreshnessOutcome.STORE),
        (("no-cache",), FreshnessOutcome.NOT_KEPT),
        (("private, no-cache",), FreshnessOutcome.NOT_KEPT),
    ],
)
def test_what_is_current_is_not_kept_for_another_hash(said, expected):
    fields = [("cache-control", value) for value in said]
    assert outcome(answer(200, *fields), None, FreshnessRule.HASHED) is expected


@pytest.mark.parametrize(
    ("tolerance", "at", "expected"),
    [
        (Tolerance(), 0, Use.ASK),
        (Tolerance(root_ttl=5), 4, Use.FRESH),
        (Tolerance(root_ttl=5), 5, Use.ASK),
        (Tolerance(root_ttl=5, stale_while_revalidate=5), 9, Use.STALE_WHILE_REVALIDATE),
        (Tolerance(root_ttl=5, stale_while_revalidate=5), 10, Use.ASK),
    ],
)
def test_usage_when_root(tolerance, at, expected):
    root = held(("cache-control", "max-age=99999"))
    assert usage(root, FreshnessRule.REVALIDATED, tolerance, now=NOW + at) is expected


@pytest.mark.parametrize("directive", ["must-revalidate", "proxy-revalidate", "no-cache", "s-maxage=2"])
def test_stale_answer_when_it_is_forbidden_does_not_stand_in(directive):
    """cache-tests' stale-close-* for a cache that can be asked directly."""
    kept = held(("cache-control", f"max-age=2, {directive}"))
    assert not may_stand_in(kept, FreshnessRule.PLAIN, Tolerance(), now=NOW + 3)
    assert may_stand_in(held(("cache-control", "max-age=2")), FreshnessRule.PLAIN, Tolerance(), now=NOW + 3)


@pytest.mark.parametrize(
    ("rule", "tolerance", "at", "expected"),
    [
        (FreshnessRule.REVALIDATED, Tolerance(stale_if_error=10), 9, True),
        (FreshnessRule.REVALIDATED, Tolerance(stale_if_error=10), 10, False),
        (FreshnessRule.HASHED, Tolerance(stale_if_error=10), 10**6, True),
        (FreshnessRule.HASHED, STRICT, 0, False),
        (FreshnessRule.PLAIN, STRICT, 61, False),
    ],
)
def test_stand_in_when_the_server_fails(rule, tolerance, at, expected):
    assert may_stand_in(held(("cache-control", "max-age=60")), rule, tolerance, now=NOW + at) is expected


def test_stand_in_when_the_server_allows_it_though_the_client_does_not():
    kept = held(("cache-control", "max-age=2, stale-if-error=60"))
    assert may_stand_in(kept, FreshnessRule.PLAIN, STRICT, now=NOW + 61)
    assert not may_stand_in(kept, FreshnessRule.PLAIN, STRICT, now=NOW + 63)


@pytest.mark.parametrize("rule", [FreshnessRule.PLAIN, FreshnessRule.REVALIDATED])
def test_usage_when_the_clock_was_set_back(rule):
    ahead = held(("cache-control", "max-age=60"), received=10 * 86400)
    assert usage(ahead, rule, Tolerance(root_ttl=60), now=NOW) is Use.ASK


@given(st.floats(0, 1e6), st.floats(0, 1e6))
def test_age_when_time_passes_never_shrinks(early, more):
    kept = held(("age", "3"), ("date", date(-5)))
    assert age_of(kept, now=NOW + early) <= age_of(kept, now=NOW + early + more)


@pytest.mark.parametrize(
    ("status", "fields", "own", "expected"),
    [
        (200, [], None, FreshnessOutcome.STORE),
        (200, [("cache-control", "no-store")], None, FreshnessOutcome.NOT_KEPT),
        (200, [("cache-control", "No-StOrE, max-age=9")], None, FreshnessOutcome.NOT_KEPT),
        (206, [], None, FreshnessOutcome.DENIED),
        (304, [("etag", '"a"')], '"a"', FreshnessOutcome.FRESHEN),
        (304, [("etag", 'W/"a"')], '"a"', FreshnessOutcome.FRESHEN),
        (304, [], '"a"', FreshnessOutcome.FRESHEN),
        (304, [("etag", '"b"')], '"a"', FreshnessOutcome.REPEAT),
        (304, [("etag", '"a"')], None, FreshnessOutcome.REPEAT),
        (301, [], None, FreshnessOutcome.REDIRECT),
        (308, [], None, FreshnessOutcome.REDIRECT),
        (406, [], None, FreshnessOutcome.REFUSED),
        (415, [], None, FreshnessOutcome.REFUSED),
        (404, [], '"a"', FreshnessOutcome.MISSING),
        (401, [], '"a"', FreshnessOutcome.DENIED),
        (403, [], '"a"', FreshnessOutcome.DENIED),
        (429, [], '"a"', FreshnessOutcome.FAILED),
        (503, [], '"a"', FreshnessOutcome.FAILED),
        (600, [], '"a"', FreshnessOutcome.FAILED),
    ],
)
def test_outcome(status, fields, own, expected):
    kept = None if own is None else held(("etag", own))
    assert outcome(answer(status, *fields), kept, FreshnessRule.HASHED) is expected


@pytest.mark.parametrize("vary", ["*", "Foo, *", "*, *", ", *"])
def test_storable_when_it_varies_on_everything(vary):
    assert not is_storable(answer(200, ("vary", vary)), FreshnessRule.PLAIN)
    assert is_storable(answer(200, ("vary", vary)), FreshnessRule.HASHED)


def test_freshened_when_a_304_lies_about_the_body():
    kept = held(
        ("content-type", "application/json"), ("etag", '"a"'), ("x", "1"), ("age", "9"), received=-100
    )
    news = answer(
        304,
        ("content-type", "text/html"),
        ("content-encoding", "gzip"),
        ("content-length", "0"),
        ("x", "2"),
        ("cache-control", "max-age=5"),
    )
    fields = freshen_head(kept, news).fields
    assert first(fields, "content-type") == "application/json"
    assert first(fields, "content-encoding") is None
    assert first(fields, "content-length") is None
    assert (first(fields, "x"), first(fields, "age")) == ("2", None)
    assert usage(freshen_head(kept, news), FreshnessRule.PLAIN, STRICT, now=NOW + 4) is Use.FRESH


def test_conditions_when_there_is_an_etag_or_none():
    modified = ("last-modified", date(-9))
    assert conditions(held(("etag", '"a"'), modified), FreshnessRule.REVALIDATED) == (
        ("if-none-match", '"a"'),
    )
    assert conditions(held(modified), FreshnessRule.PLAIN) == (("if-modified-since", date(-9)),)
    # The reference's root says the time of the request there.
    assert conditions(held(modified), FreshnessRule.REVALIDATED) == ()


@pytest.mark.parametrize(
    ("stored", "asked", "expected"),
    [
        ([("foo", "1")], [("foo", "1"), ("other", "2")], True),
        ([("foo", "1")], [("foo", "2")], False),
        ([], [("foo", "1")], False),
        ([("foo", "1")], [], False),
        ([], [], True),
        ([("foo", "1,2")], [("foo", " 1, 2 ")], True),
        ([("foo", "1, 2")], [("foo", "1"), ("foo", "2")], True),
    ],
)
def test_selects_when_the_answer_varies(stored, asked, expected):
    given_answer = answer(200, ("vary", "Foo"))
    kept = head_to_store(given_answer, selecting_of(given_answer, tuple(stored)))
    again = read_stored_head(metadata_of(kept))
    assert again is not None
    assert selects(again, tuple(asked)) is expected


def test_held_when_its_fields_are_too_many_keeps_what_matters():
    kept = head_to_store(answer(200, ("etag", '"a"'), *((f"x-{n}", "v" * 99) for n in range(200))), {})
    assert first(kept.fields, "etag") == '"a"'
    assert len(str(metadata_of(kept))) < 4096


@pytest.mark.parametrize(
    "metadata", [{}, {"fields": "x"}, {"fields": "{}", "requested_at": 0, "received_at": 0}]
)
def test_held_when_the_metadata_is_not_ours(metadata):
    assert read_stored_head(metadata) is None
