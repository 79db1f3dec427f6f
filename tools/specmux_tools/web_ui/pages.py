"""Jobs of the process that end in a page over all documents: home, search, the status, an error."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlencode

import orjson
from markupsafe import Markup

from specmux_aggregator.http.content_codings import encode_body
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.reader.requests import ErrorRequest, ReaderAnswer, SearchRequest, SiteParts, Wants
from specmux_converters.counted_nouns import size
from specmux_converters.group_versions import GroupVersion, split
from specmux_converters.order import version_rank
from specmux_tools.errors import SchemasError
from specmux_tools.explanation.field_path import format_path, similar_to
from specmux_tools.processor_time import QueryTooLong, limited_time
from specmux_tools.reader.state import ReaderState
from specmux_tools.search_index.graph import MOST_USED, group_class
from specmux_tools.search_index.query import SchemaHit, SearchResult, search
from specmux_tools.search_index.words import mark_words
from specmux_tools.web_ui.page_frame import mark_code, render_page

_FIRST: Final = ("", "apps", "batch")
"""Groups that most people look for."""
PROVENANCES: Final = {
    "native": "as published by its server",
    "converted": "converted from Swagger 2.0",
    "file": "from a file",
    "crd": "built from a CustomResourceDefinition",
}
_BADGES: Final = {"native": "as published", "converted": "Swagger 2.0", "file": "file", "crd": "CRD"}
"""The same in a table, where it stands in every row."""


def home(
    site: SiteParts, coding: Coding, state: ReaderState, version: str, missing: tuple[str, ...]
) -> ReaderAnswer | Wants:
    if state.version != version:
        return Wants(None)
    groups = _groups(state)
    page = render_page(
        "home.html",
        root="./",
        title="Kinds",
        site=site,
        groups=groups,
        most_used=_most_used(groups),
        kinds=sum(len(group["kinds"]) for group in groups),
        incomplete=sorted({*missing} - state.index.documents.keys(), key=_home_rank),
    )
    return ReaderAnswer(encode_body(page, coding))


def _groups(state: ReaderState) -> list[dict[str, Any]]:
    """With their kinds by name, each with its versions, the preferred one first."""
    kinds: dict[str, dict[str, list[dict[str, str]]]] = {}
    first: dict[str, GroupVersion] = {}
    for key in sorted(state.index.documents, key=_home_rank):
        group, name = split(key) or ("", key)
        first.setdefault(group, key)
        for root in state.index.documents[key].roots:
            if root.name.is_resource:
                versions = kinds.setdefault(group, {}).setdefault(root.name.kind.kind, [])
                versions.append({"name": name, "key": key})
    return [
        {
            "name": group,
            "key": first[group],
            "kinds": [{"name": name, "versions": found[name]} for name in sorted(found)],
        }
        for group, found in kinds.items()
    ]


def _most_used(groups: list[dict[str, Any]]) -> list[dict[str, str]]:
    """The most used kinds that are there, in the order of ``MOST_USED``, at their preferred version."""
    known = {
        (group["name"], kind["name"]): kind["versions"][0]["key"]
        for group in groups
        for kind in group["kinds"]
    }
    return [{"name": kind, "key": known[group, kind]} for group, kind in MOST_USED if (group, kind) in known]


def _home_rank(key: GroupVersion) -> tuple[Any, ...]:
    group, version = split(key) or ("", key)
    first = _FIRST.index(group) if group in _FIRST else len(_FIRST)
    return first, group_class(group), group, version_rank(version)


def search_page(
    site: SiteParts,
    request: SearchRequest,
    coding: Coding,
    state: ReaderState,
    version: str,
    missing: tuple[str, ...],
) -> ReaderAnswer | Wants:
    if state.version != version:
        return Wants(None)
    found, message = SearchResult((), 0, False), ""
    if request.query:
        try:
            with limited_time():
                found = search(state.index, request.query, limit=request.limit, offset=request.offset)
        except SchemasError as error:
            message = str(error)
        except QueryTooLong:
            message = "This search takes too long. Add words, or use longer ones."
    end = request.offset + len(found.rows)
    more = urlencode({"q": request.query, "offset": end}) if found.total > end and end <= 1000 else ""
    page = render_page(
        "search.html",
        root="./",
        title=request.query or "Search",
        site=site,
        query=request.query,
        rows=[_row(row, request.query) for row in found.rows],
        total=found.total,
        offset=request.offset,
        more=more,
        message=message,
        did_you_mean=found.did_you_mean,
        incomplete=sorted(missing),
    )
    return ReaderAnswer(encode_body(page, coding))


def status_page(site: SiteParts, state: ReaderState, status: bytes, coding: Coding) -> ReaderAnswer:
    told = orjson.loads(status)
    backends = [_backend(name, each, told) for name, each in told["backends"].items()]
    page = render_page(
        "status.html",
        root="./",
        title="Status",
        site=site,
        current="status",
        version=told["version"],
        backends=sorted(backends, key=lambda each: each["is_ok"]),
        down=[each for each in backends if each["reason"]],
        pending=sum(each["state"] == "pending" for each in backends),
        conflicts=told["conflicts"],
        documents=[
            {
                "name": key,
                "owner": each["owner"],
                "hash": str(each["hash"]),
                "size": size(each["bytes"]) if each["bytes"] else None,
                "stale": each["stale"],
                "provenance": PROVENANCES[each["provenance"]],
                "badge": _BADGES[each["provenance"]],
            }
            for key, each in told["groupVersions"].items()
        ],
    )
    return ReaderAnswer(encode_body(page, coding))


def error_page(site: SiteParts, state: ReaderState, request: ErrorRequest, coding: Coding) -> ReaderAnswer:
    similar = list(request.similar)
    if request.group_version is not None:
        similar += (
            (each, f"group-version/{each}") for each in similar_to(request.group_version, request.published)
        )
    page = render_page(
        "error.html",
        root=request.root,
        title=str(request.code),
        site=site,
        code=request.code,
        message=request.message,
        similar=[{"name": name, "page": page} for name, page in similar],
    )
    return ReaderAnswer(encode_body(page, coding))


def validate_page(site: SiteParts, state: ReaderState, coding: Coding) -> ReaderAnswer:
    page = render_page("validate.html", root="./", title="Validate", site=site, current="validate")
    return ReaderAnswer(encode_body(page, coding))


def _row(row: SchemaHit, query: str) -> dict[str, Any]:
    name = ".".join(filter(None, (row.kind.kind.kind, format_path(row.path))))
    return {
        "document": row.kind.group_version,
        "kind": row.kind.kind.kind,
        "path": format_path(row.path),
        "name": Markup(_mark_hits(name, query).replace(".", "<wbr>.")),  # noqa: S704  # escaped there
        "type": row.type,
        "summary": Markup(_mark_hits(row.summary, query)),  # noqa: S704  # escaped there
        "version_text": row.kind.kind.api_version,
        "also": row.also_in_count,
    }


def _mark_hits(text: str, query: str) -> str:
    """HTML of a text, with what the query found in it."""
    parts = (
        f"<mark>{mark_code(part)}</mark>" if is_hit else mark_code(part)
        for part, is_hit in mark_words(text, query)
    )
    return "".join(parts)


def _backend(name: str, told: dict[str, Any], status: dict[str, Any]) -> dict[str, Any]:
    error, age = told["error"], told["lastSuccessAgeSeconds"]
    owned = [each for each in status["groupVersions"].values() if each["owner"] == name]
    return {
        "name": name,
        "is_ok": told["state"] == "up",
        "state": told["state"] if error is None else error["cause"],
        "reason": "" if error is None else _reason(**error),
        "since": "no answer yet" if age is None else f"since its last answer, {duration(age)} ago",
        "documents": len(owned),
        "age": "never" if age is None else f"{duration(age)} ago",
        "losses": sum(each["losses"] for each in owned),
    }


def _reason(cause: str, detail: str, **_: Any) -> str:
    return (detail if cause in detail else f"{cause}: {detail}")[:300]


def duration(seconds: float) -> str:
    """In the largest unit of which there are two, or in seconds."""
    for length, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * length:
            return f"{seconds // length:.0f} {unit}"
    return f"{seconds:.0f} s"
