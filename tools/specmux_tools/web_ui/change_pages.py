"""Jobs of the reader process that render the change log, and its entries about one kind.

Entries arrive as the JSON that the log keeps. The templates escape all their text.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

import orjson

from specmux_aggregator.changes.entries import time_text
from specmux_aggregator.http.content_codings import encode_body
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.reader.assets import root_from
from specmux_aggregator.reader.requests import ChangesRequest, QuestionRefusal, ReaderAnswer, SiteParts
from specmux_converters.group_versions import GroupVersion
from specmux_tools.processor_time import QueryTooLong, limited_time
from specmux_tools.reader.state import ReaderState
from specmux_tools.web_ui.page_frame import render_page

ENTRIES_MAX: Final = 20
"""Most entries of one group-version on a page, newest first; ``/openapi/changes`` has more."""
CHANGES_MAX: Final = 200
"""Most changes of one entry on a page, most severe first."""
PLACES_MAX: Final = 5

RENDER_SECONDS: Final = 2.0  # of processor time
_SEVERITIES: Final = ("breaking", "warning", "notice")
_GONE: Final = frozenset(("resource-removed", "group-version-removed"))


def changes_page(
    site: SiteParts, state: ReaderState, request: ChangesRequest, coding: Coding
) -> ReaderAnswer | QuestionRefusal:
    try:
        with limited_time(RENDER_SECONDS):
            return ReaderAnswer(encode_body(_render_changes(site, request), coding))
    except QueryTooLong:
        return QuestionRefusal(503, "this page takes too long to make")


def shown_entries(
    bodies: Iterable[bytes], *, group_version: GroupVersion | None = None, kind: str | None = None
) -> list[dict[str, Any]]:
    """Entries in the form of the templates; with ``kind``, only those that change it, and only their changes
    of it."""
    made = []
    for body in bodies:
        entry = orjson.loads(body)
        changes = [change for each in entry["changes"] if (change := _change(each, group_version, kind))]
        if changes or kind is None:
            made.append(_entry(entry, changes, is_whole=kind is None))
    return made


def _render_changes(site: SiteParts, request: ChangesRequest) -> bytes:
    name = request.group_version
    common: dict[str, Any] = {"site": site, "current": "changes", "since": _since(request)}
    if name is None:
        entries = [_entry(orjson.loads(body), [], is_whole=True) for body in request.entries]
        return render_page("changes.html", root="./", title="Changes", entries=entries, **common)
    return render_page(
        "group_version_changes.html",
        root=root_from(f"changes/{name}"),
        title=f"Changes of {name}",
        key=name,
        is_published=request.is_published,
        entries=shown_entries(request.entries, group_version=name),
        most=ENTRIES_MAX,
        **common,
    )


def _since(request: ChangesRequest) -> dict[str, str] | None:
    if request.complete_since is None:
        return None
    at = time_text(request.complete_since)
    return {"at": at, "when": _when(at)}


def _when(at: str) -> str:
    return f"{at[:19].replace('T', ' ')} UTC"


def _entry(entry: dict[str, Any], changes: Sequence[dict[str, Any]], *, is_whole: bool) -> dict[str, Any]:
    counts = entry["summary"] if is_whole else Counter(change["severity"] for change in changes)
    return {
        "id": entry["id"],
        "at": entry["at"],
        "when": _when(entry["at"]),
        "key": entry["groupVersion"],
        "result": entry["result"],
        "sides": [_side(entry["old"]), _side(entry["new"])],
        "counts": [(word, counts[word]) for word in _SEVERITIES if counts[word]],
        "documentation": entry["summary"]["documentation"] if is_whole else 0,
        "changes": changes[:CHANGES_MAX],
        "left_off": max(0, len(changes) - CHANGES_MAX),
        "is_truncated": entry["truncated"],
        "is_gone": entry["new"] is None,
    }


def _side(version: dict[str, str] | None) -> dict[str, str] | None:
    return None if version is None else {"backend": version["backend"], "hash": version["hash"][:12]}


def _change(
    change: dict[str, Any], group_version: GroupVersion | None, kind: str | None
) -> dict[str, Any] | None:
    """None if no place of the change belongs to the kind."""
    places = [
        place
        for place in change["places"]
        if kind is None or (place["kind"], place["groupVersion"]) == (kind, group_version)
    ]
    if not places:
        return None
    return {
        "id": change["id"],
        "severity": change["severity"],
        "message": change["message"],
        "places": [
            (place["kind"], place["path"], change["id"] not in _GONE and _is_kind(place["kind"]))
            for place in places[:PLACES_MAX]
        ],
        "more": max(0, len(places) - PLACES_MAX),
    }


def _is_kind(name: str) -> bool:
    """Whether a page of it may exist: operations without a kind are named by method and path."""
    return name.isascii() and name.isalnum()
