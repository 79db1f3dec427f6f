"""Jobs of the process that end in a page: home, search, a kind, the status."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from itertools import islice
from typing import Any, Final
from urllib.parse import urlencode

import orjson
from markupsafe import Markup

from specmux_aggregator.http.content_codings import encoded
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.questions.answers import (
    QuestionRefusal,
    ReaderAnswer,
    SearchRequest,
    kind_called,
    refusal_of,
)
from specmux_aggregator.questions.change_pages import ENTRIES_MAX, shown_entries
from specmux_aggregator.questions.frames import rendered
from specmux_aggregator.questions.prose import prose
from specmux_aggregator.questions.state import QueryTooLong, ReaderState, Wants, limited_time
from specmux_aggregator.questions.tree import tree_html
from specmux_converters.document import Document
from specmux_converters.group_versions import GroupVersion
from specmux_converters.operations import operations_of
from specmux_schemas.errors import SchemasError
from specmux_schemas.explanation.field_path import written
from specmux_schemas.explanation.kind_names import KindName
from specmux_schemas.explanation.skeleton import skeleton
from specmux_schemas.explanation.tree import MOST_FIELDS, FieldPlace, tree_of
from specmux_schemas.order import discovery_rank
from specmux_schemas.resources import GroupVersionKind, api_version, split
from specmux_schemas.search_index.query import SchemaHit, search
from specmux_schemas.search_index.versions import beside

RENDER_SECONDS: Final = 2.0  # of processor time
_OPERATIONS_MAX: Final = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class KindRequest:
    group_version: GroupVersion
    hash: str
    kind: str
    entries: tuple[bytes, ...] | None = None
    """Of the group-version in the change log, the newest first; None where no log is kept."""


def home(
    state: ReaderState,
    version: str,
    missing: tuple[str, ...],
    coding: Coding,
    *,
    is_logged: bool,
    has_swagger: bool,
) -> ReaderAnswer | Wants:
    """``is_logged``, ``has_swagger``: whether there is a change log, and Swagger UI, to lead to."""
    if state.version != version:
        return Wants(None)
    groups: dict[str, list[dict[str, Any]]] = {}
    for key in sorted(state.index.documents, key=discovery_rank):
        group, name = split(key) or ("", key)
        roots = state.index.documents[key].roots
        kinds = sorted(root.name.kind.kind for root in roots if root.name.is_resource)
        if kinds:
            groups.setdefault(group, []).append({"name": name, "key": key, "kinds": kinds})
    page = rendered(
        "home.html",
        root="./",
        title="Kinds",
        groups=[{"name": group, "versions": versions} for group, versions in groups.items()],
        kinds=sum(len(version["kinds"]) for versions in groups.values() for version in versions),
        incomplete=sorted((*missing, *state.refused)),
        is_logged=is_logged,
        has_swagger=has_swagger,
    )
    return ReaderAnswer(encoded(page, coding))


def search_page(
    state: ReaderState, version: str, missing: tuple[str, ...], request: SearchRequest, coding: Coding
) -> ReaderAnswer | Wants:
    if state.version != version:
        return Wants(None)
    rows: tuple[SchemaHit, ...] = ()
    total, message = 0, ""
    if request.query:
        try:
            with limited_time():
                found = search(state.index, request.query, limit=request.limit, offset=request.offset)
            rows, total = found.rows, found.total
        except SchemasError as error:
            message = str(error)
        except QueryTooLong:
            message = "This search takes too long; more words, or longer ones, find less."
    end = request.offset + len(rows)
    more = urlencode({"q": request.query, "offset": end}) if total > end and end <= 1000 else ""
    page = rendered(
        "search.html",
        root="./",
        title=request.query or "Search",
        query=request.query,
        rows=[_row(row) for row in rows],
        total=total,
        offset=request.offset,
        more=more,
        message=message,
        incomplete=sorted((*missing, *state.refused)),
    )
    return ReaderAnswer(encoded(page, coding))


def kind_page(
    state: ReaderState, version: str, missing: tuple[str, ...], request: KindRequest, coding: Coding
) -> ReaderAnswer | QuestionRefusal | Wants:
    if state.version != version:
        return Wants(None)
    document = state.document(request.hash)
    if document is None:
        return Wants((request.group_version,))
    try:
        with limited_time(RENDER_SECONDS):
            return ReaderAnswer(encoded(_kind(state, document, request), coding))
    except SchemasError as error:
        return refusal_of(error)
    except (QueryTooLong, RecursionError):
        return QuestionRefusal(503, "this page takes too long to make")


def status_page(state: ReaderState, status: bytes, coding: Coding, *, is_logged: bool) -> ReaderAnswer:
    told = orjson.loads(status)
    page = rendered(
        "status.html",
        root="./",
        title="Status",
        backends=[_backend(name, each, told) for name, each in told["backends"].items()],
        conflicts=[
            {"name": each["groupVersion"], "winner": each["winner"], "losers": each["losers"]}
            for each in told["conflicts"]
        ],
        documents=[
            {"name": key, "owner": each["owner"], "hash": str(each["hash"])[:16]}
            for key, each in told["groupVersions"].items()
        ],
        is_logged=is_logged,
    )
    return ReaderAnswer(encoded(page, coding))


def _kind(state: ReaderState, document: Document, request: KindRequest) -> bytes:
    name, found = kind_called(document, request.group_version, request.kind)
    tree = tree_of(document, FieldPlace((), found.schema, False))
    depth = request.group_version.count("/") + 2
    return rendered(
        "kind.html",
        root="../" * depth,
        title=f"{name.kind.kind} {_version(name.kind)}",
        kind=name.kind,
        version_text=_version(name.kind),
        names=[each for each in (*name.names[:1], *name.short_names) if each != name.kind.kind],
        description=Markup(prose(tree.description)),  # noqa: S704  # escaped there
        tree=Markup(tree_html(tree)),  # noqa: S704  # escaped there
        is_cut=tree.size > MOST_FIELDS,
        most=MOST_FIELDS,
        skeleton=skeleton(document, name.kind, found.schema),
        versions=_versions(state, name),
        operations=list(islice(operations_of(document, *astuple(name.kind)), _OPERATIONS_MAX)),
        key=request.group_version,
        is_logged=request.entries is not None,
        entries=shown_entries(
            request.entries or (), group_version=request.group_version, kind=name.kind.kind
        ),
        most_entries=ENTRIES_MAX,
    )


def _versions(state: ReaderState, name: KindName) -> list[dict[str, Any]]:
    """The other versions of a kind, with what each has that this one has not."""
    places = state.index.places  # brings the kinds up to date
    same = [
        root
        for root in state.index.kinds.get(name.kind.kind.casefold(), ())
        if (root.name.kind.group, root.name.kind.kind) == (name.kind.group, name.kind.kind)
    ]
    own = next((root for root in same if root.name.kind == name.kind), None)
    if own is None or places.positions[own.entry] < 0:
        return []
    made = []
    for root in same:
        if root is not own:
            differing = beside(state.index.graph, own.entry, root.entry)
            named = {"name": _version(root.name.kind), "key": root.name.group_version}
            made.append({**named, "added": differing.added, "dropped": differing.dropped})
    return made


def _row(row: SchemaHit) -> dict[str, Any]:
    return {
        "document": row.kind.group_version,
        "kind": row.kind.kind.kind,
        "path": written(row.path),
        "type": row.type,
        "summary": row.summary,
        "version_text": _version(row.kind.kind),
        "also": row.also_in_count,
    }


def _backend(name: str, told: dict[str, Any], status: dict[str, Any]) -> dict[str, Any]:
    error, age = told["error"], told["lastSuccessAgeSeconds"]
    owned = [each for each in status["groupVersions"].values() if each["owner"] == name]
    return {
        "name": name,
        "is_ok": told["state"] == "up",
        "health": told["state"] if error is None else f"{error['cause']}: {error['detail']}"[:200],
        "documents": len(owned),
        "age": "never" if age is None else f"{age:.0f} s ago",
        "losses": sum(each["losses"] for each in owned),
    }


def _version(kind: GroupVersionKind) -> str:
    return api_version(kind.group, kind.version)
