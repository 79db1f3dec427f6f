"""Queries of the change log and of its stream, and the answers written for them, without a service."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import orjson
import pytest

from specmux_aggregator.changes.endpoint import (
    ENTRIES_MAX,
    FORMAT,
    PATH,
    ChangesEndpoint,
    Page,
    Query,
    comparison_body,
    page_body,
    page_of,
    read_query,
)
from specmux_aggregator.changes.entries import (
    ComparisonOutcome,
    Findings,
    PublishedVersion,
    entry_of,
    time_text,
)
from specmux_aggregator.changes.events import Feed
from specmux_aggregator.changes.log import ChangeLog
from specmux_aggregator.changes.stream import parse_feed
from specmux_aggregator.http.messages import Request
from specmux_aggregator.model.backend import BackendName
from specmux_aggregator.model.observation import Hash
from specmux_converters.change_severity import ChangeSeverity
from specmux_converters.group_versions import GroupVersion

KEY = GroupVersion("apis/example.com/v1")
MANY = "&".join(f"a{number}=1" for number in range(100))


def message(query: str, **headers: str) -> Any:
    path = f"{PATH}?{query}"
    return SimpleNamespace(method="GET", path=path, url=SimpleNamespace(raw_path_qs=path), headers=headers)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("", Query()),
        ("limit=1", Query(limit=1)),
        (f"limit={ENTRIES_MAX}", Query(limit=ENTRIES_MAX)),
        ("timeout=32s&severity=Warning", Query(severity=ChangeSeverity.WARNING)),
        ("from=A&to=B", Query(hashes=(Hash("A"), Hash("B")))),
    ],
)
def test_query_of_the_log_is_read(query: str, expected: Query) -> None:
    assert read_query(query) == expected


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        f"limit={ENTRIES_MAX + 1}",
        "limit=x",
        "severity=loud",
        "from=A",
        "to=A",
        "since=x",
        "continue=",
        MANY,
    ],
)
async def test_query_of_the_log_that_cannot_be_read_is_400(query: str) -> None:
    parts: Any = SimpleNamespace()
    answer = await ChangesEndpoint(parts, parts, is_private=False).respond(Request("GET", PATH, query))
    assert answer.status == 400


def test_stream_begins_where_its_query_or_a_later_header_says() -> None:
    assert parse_feed(message("")) == (Feed.CHANGES, None)
    assert parse_feed(message("kind=publications&timeout=32s")) == (Feed.PUBLICATIONS, None)
    first, second = (parse_feed(message("since=7", **headers)) for headers in ({}, {"Last-Event-ID": "9"}))
    assert (first, second) == ((Feed.CHANGES, 7), (Feed.CHANGES, 9))


@pytest.mark.parametrize("query", ["kind=rumours", "since=x", "since=", MANY])
def test_stream_with_a_query_that_cannot_be_read_says_so(query: str) -> None:
    with pytest.raises(ValueError, match=r"must be|cannot be read"):
        parse_feed(message(query))


def test_comparison_names_both_documents() -> None:
    found = Findings({"breaking": 1}, 2, b'[{"id":"field-removed"}]', is_truncated=True)
    assert orjson.loads(comparison_body(KEY, (Hash("A"), Hash("B")), found)) == {
        "format": FORMAT,
        "groupVersion": KEY,
        "old": {"hash": "A"},
        "new": {"hash": "B"},
        "summary": {"breaking": 1, "documentation": 2},
        "truncated": True,
        "changes": [{"id": "field-removed"}],
    }


def log(*breaking: int) -> ChangeLog:
    """An entry for each, of two group-versions in turn, with so many changes that break."""
    found = ChangeLog(most_entries=10, most_bytes=1 << 20)
    for number, count in enumerate(breaking):
        versions = (
            PublishedVersion(Hash("A"), BackendName("b")),
            PublishedVersion(Hash("B"), BackendName("b")),
        )
        findings = Findings({"breaking": count, "warning": 0, "notice": 1}, 0, b"[]", is_truncated=False)
        name = GroupVersion(f"apis/g/v{number % 2}")
        found.add(entry_of(found.next_id(), 0.0, name, ComparisonOutcome.COMPARED, versions, findings))
    return found


def test_page_without_a_beginning_has_the_newest() -> None:
    changes = log(1, 0, 1, 0, 0)
    ids = [entry.id for entry in changes]
    everything = page_of(changes, GroupVersion(""), Query(limit=1))
    assert [entry.id for entry in everything.entries] == [ids[4], ids[3]], "one of each group-version"
    one = page_of(changes, GroupVersion("apis/g/v0"), Query(limit=2))
    assert [entry.id for entry in one.entries] == [ids[4], ids[2]]
    severe = page_of(changes, GroupVersion("apis/g/v0"), Query(severity=ChangeSeverity.BREAKING))
    assert [entry.id for entry in severe.entries] == [ids[2], ids[0]]
    for page in (everything, one, severe):
        assert (page.last, page.is_reset, page.following) == (changes.last_id, False, None)


def test_pages_after_an_id_go_on_to_the_last_entry() -> None:
    changes = log(1, 0, 1, 0, 0)
    ids = [entry.id for entry in changes]
    first = page_of(changes, GroupVersion(""), Query(since=ids[0], limit=2))
    assert [entry.id for entry in first.entries] == ids[1:3]
    assert (first.following, first.last, first.is_reset) == (ids[2], ids[2], False)
    rest = page_of(changes, GroupVersion(""), Query(since=first.following, limit=2))
    assert [entry.id for entry in rest.entries] == ids[3:]
    assert (rest.following, rest.last, rest.is_reset) == (None, changes.last_id, False)
    one = page_of(changes, GroupVersion("apis/g/v0"), Query(since=ids[0], severity=ChangeSeverity.BREAKING))
    assert ([entry.id for entry in one.entries], one.last) == ([ids[2]], changes.last_id)
    foreign = page_of(changes, GroupVersion(""), Query(since=ids[-1] + 5))
    assert ([entry.id for entry in foreign.entries], foreign.is_reset) == (ids, True)


def test_body_of_a_page_says_where_it_goes_on_and_since_when_it_is_complete() -> None:
    entries = list(log(1))
    page = Page(entries, last=7, is_reset=True, following=6, complete_since=0.0)
    assert orjson.loads(page_body(page, b"")) == {
        "format": FORMAT,
        "last": 7,
        "reset": True,
        "completeSince": time_text(0.0),
        "continue": 6,
        "entries": [orjson.loads(entries[0].body)],
    }
    assert page_body(page, b"text\n").decode().splitlines() == [
        "reset: what came before is not known any more",
        "text",
        "more: continue=6",
    ]
    last = orjson.loads(page_body(Page([], last=7), b""))
    assert (last["reset"], last["completeSince"], last["entries"], "continue" in last) == (
        False,
        None,
        [],
        False,
    )
    assert page_body(Page([], last=7), b"text\n") == b"text\n"
    assert b"every change since 1970" in page_body(Page([], last=7, complete_since=0.0), b"text\n")
