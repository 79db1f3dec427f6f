"""Pages of the change log: nothing of an entry is markup, and what is left off is said."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from specmux_aggregator.changes.entries import (
    ComparisonOutcome,
    Findings,
    LogEntry,
    PublishedVersion,
    entry_of,
)
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.backend import BackendName
from specmux_aggregator.model.observation import Hash
from specmux_aggregator.reader.requests import ChangesRequest, ReaderAnswer, SiteParts
from specmux_converters.group_versions import GroupVersion
from specmux_tools.differences.changes import Change, Location
from specmux_tools.differences.reports import change_object
from specmux_tools.differences.rules import RULES, SEVERITIES, Impacts
from specmux_tools.reader.state import ReaderState
from specmux_tools.web_ui.change_pages import CHANGES_MAX, PLACES_MAX, changes_page, shown_entries

KEY = GroupVersion("apis/example.com/v1")
HOSTILE = "<script>alert(1)</script> \"onmouseover=alert(1) '> </td></table><style>*{}</style> {{ 7 * 7 }}"
OLD = PublishedVersion(Hash("A" * 128), BackendName("blue"))
NEW = PublishedVersion(Hash("B" * 128), BackendName("green"))


def change(id: str = "field-removed", *, kinds: tuple[str, ...] = ("Widget",), **values: Any) -> Change:
    told = {"severity": SEVERITIES["breaking"], "what": None, "old": None, "new": None, "path": "spec.b"}
    told |= values
    places = tuple(Location(KEY, kind, told["path"]) for kind in kinds)
    impacts: Impacts = RULES[id].impacts
    return Change(
        id=id,
        severity=told["severity"],
        impacts=impacts,
        what=told["what"],
        old=told["old"],
        new=told["new"],
        places=places,
    )


def entry(
    *changes: Change, old: PublishedVersion | None = OLD, new: PublishedVersion | None = NEW
) -> LogEntry:
    words = [each.severity.word for each in changes]
    counts = {word: words.count(word) for word in ("breaking", "warning", "notice")}
    body = b"[" + b",".join(orjson.dumps(change_object(each)) for each in changes) + b"]"
    found = Findings(counts, 0, body, False)
    return entry_of(7, 1_795_326_013.0, KEY, ComparisonOutcome.COMPARED, (old, new), found)


def page(
    *entries: LogEntry,
    name: GroupVersion | None = KEY,
    is_logged: bool = True,
    since: float | None = 1_795_326_000.0,
) -> str:
    bodies = tuple(each.body for each in entries)
    request = ChangesRequest(entries=bodies, complete_since=since, group_version=name, is_published=True)
    answer = changes_page(SiteParts(is_logged=is_logged), ReaderState(), request, Coding.IDENTITY)
    assert isinstance(answer, ReaderAnswer)
    return answer.body.decode()


def words(html: str) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", html.partition("<main")[2])).split())


class Tags(HTMLParser):
    """All tags and the names of their attributes."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: set[tuple[str, str]] = set()
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {(tag, ""), *((tag, name) for name, _ in attrs)}


OWN_TAGS = Tags(page(entry(change(), change(kinds=("", "Widget"), path="")))).found


def test_entry_is_shown_with_all_that_it_says() -> None:
    told = words(page(entry(change(old="string"))))
    assert "2026-11-22 05:40:13 UTC : compared" in told
    assert "1 breaking · from blue AAAAAAAAAAAA to green BBBBBBBBBBBB" in told
    assert "breaking Widget spec.b field-removed : the field is gone: string" in told
    assert 'href="../../../kind/apis/example.com/v1/Widget"' in page(entry(change()))


def test_last_entries_lead_to_the_group_version() -> None:
    html = page(entry(change()), name=None)
    assert 'href="./changes/apis/example.com/v1"' in html
    assert "compared 1 breaking blue" in words(html)


def test_what_is_gone_or_new_is_said_and_not_led_to() -> None:
    html = page(entry(change("group-version-removed", path=""), new=None))
    assert "to nothing" in words(html)
    assert "kind/apis" not in html
    for id, kind in (("resource-removed", "Widget"), ("media-type-added", "GET /apis/example.com/v1/")):
        html = page(entry(change(id, kinds=(kind,), path="")))
        assert kind in words(html)
        assert "../kind/" not in html
    assert "from nothing to green" in words(page(entry(old=None)))


@pytest.mark.parametrize("name", [None, KEY])
def test_log_that_is_off_or_empty_is_said(name: GroupVersion | None) -> None:
    assert "Set changes.enabled: true" in words(page(name=name, is_logged=False))
    assert "No change since 2026-11-22 05:40:00 UTC , as far as the log goes back." in words(page(name=name))
    assert "The log begins once every backend has been checked." in words(page(name=name, since=None))


def test_only_what_touches_the_kind_is_its() -> None:
    bodies = [
        entry(change(kinds=("Gadget", "Widget")), change(kinds=("Gadget",))).body,
        entry(change(kinds=("Gadget",))).body,
    ]
    (shown,) = shown_entries(bodies, group_version=KEY, kind="Widget")
    assert shown["counts"] == [("breaking", 1)]
    assert [each["places"] for each in shown["changes"]] == [[("Widget", "spec.b", True)]]
    assert shown_entries(bodies, group_version=GroupVersion("apis/example.com/v2"), kind="Widget") == []


def test_what_is_left_off_is_counted() -> None:
    many = change(kinds=tuple(f"Kind{number:02}" for number in range(PLACES_MAX + 3)))
    assert "and 3 more" in words(page(entry(many)))
    told = words(page(entry(*[change(path=f"spec.f{number}") for number in range(CHANGES_MAX + 4)])))
    assert "4 more not shown." in told
    assert f"{CHANGES_MAX + 4} breaking" in told


@pytest.mark.parametrize("at", ["kinds", "path", "what", "old"])
def test_hostile_words_are_text(at: str) -> None:
    planted: dict[str, Any] = {at: (HOSTILE,) if at == "kinds" else HOSTILE}
    hostile = PublishedVersion(Hash(HOSTILE), BackendName(HOSTILE))
    html = page(entry(change("enum-value-removed", **planted), new=hostile))
    assert Tags(html).found <= OWN_TAGS
    assert HOSTILE in unescape(html)


@given(st.text(max_size=60), st.text(alphabet="<>&\"'`=/{}% ahscript:\n", max_size=60))
def test_any_words_are_text(path: str, kind: str) -> None:
    assert Tags(page(entry(change(path=path, kinds=(kind,))))).found <= OWN_TAGS
    assert Tags(page(entry(change(path=path)), name=GroupVersion(kind + "/v1"))).found <= OWN_TAGS
