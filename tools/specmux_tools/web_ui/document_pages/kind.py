"""The page of a kind: its fields, example, versions, operations and changes."""

from __future__ import annotations

from dataclasses import astuple
from itertools import groupby, islice
from typing import Any, Final

from specmux_aggregator.reader.requests import ENTRIES_MAX, DocumentRequest, SiteParts
from specmux_converters.document import Document
from specmux_converters.operations import KindOperation, operations_of
from specmux_converters.resources import GroupVersionKind
from specmux_tools.explanation.example import example
from specmux_tools.explanation.kind_names import KindName
from specmux_tools.reader.questions import kind_called
from specmux_tools.reader.state import ReaderState
from specmux_tools.search_index.versions import beside
from specmux_tools.web_ui.change_pages import shown_entries
from specmux_tools.web_ui.document_pages.page import fields_of, origin_of, schema_file, siblings_of, unread_of
from specmux_tools.web_ui.page_frame import load, rendered
from specmux_tools.web_ui.pages import version_text

_OPERATIONS_MAX: Final = 60


def kind_page(site: SiteParts, state: ReaderState, request: DocumentRequest, document: Document) -> bytes:
    key = request.origin.group_version
    name, found = kind_called(document, key, request.name)
    operations = _operations(document, name.kind)
    return rendered(
        "kind.html",
        title=f"{name.kind.kind} {version_text(name.kind)}",
        site=site,
        kind=name.kind,
        names=[each for each in (*name.names[:1], *name.short_names) if each != name.kind.kind],
        scope=_scope(operations),
        example=example(document, name.kind, found.schema),
        versions=_versions(state, name),
        unread=unread_of(state, key),
        operations=operations,
        current_kind=name.kind.kind,
        siblings=siblings_of(document, key),
        schema_file=schema_file(name.kind) if site.has_schemas and operations else "",
        entries=shown_entries(request.entries or (), group_version=key, kind=name.kind.kind),
        most_entries=ENTRIES_MAX,
        **fields_of(request, document, found.schema, name.kind.kind),
        **origin_of(request),
    )


def load_pages(state: ReaderState) -> None:
    """Import and compile what the first page needs: some 0.1 s of processor time."""
    load("home.html", "kind.html")


def _versions(state: ReaderState, name: KindName) -> list[dict[str, Any]]:
    """The other versions of a kind, with the fields that each adds or lacks."""
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
            named = {"name": version_text(root.name.kind), "key": root.name.group_version}
            made.append({**named, "added": differing.added, "dropped": differing.dropped})
    return made


def _operations(document: Document, kind: GroupVersionKind) -> list[tuple[str, list[KindOperation]]]:
    """By path."""
    found = islice(operations_of(document, *astuple(kind)), _OPERATIONS_MAX)
    return [(path, list(operations)) for path, operations in groupby(found, key=lambda each: each.path)]


def _scope(operations: list[tuple[str, list[KindOperation]]]) -> str:
    if not operations:
        return "Not a resource"
    return "Namespaced" if any("/{namespace}/" in path for path, _ in operations) else "Cluster-scoped"
