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
    Query,
    comparison_body,
    read_query,
)
from specmux_aggregator.changes.entries import Findings
from specmux_aggregator.changes.events import Feed
from specmux_aggregator.changes.stream import parse_feed
from specmux_aggregator.http.messages import Request
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
