"""A page that is made of documents and the index, and what such pages have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from markupsafe import Markup

from specmux_aggregator.http.content_codings import encoded
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.model.snapshot import SnapshotEntry
from specmux_aggregator.reader.answers import QuestionRefusal, ReaderAnswer, refusal_of
from specmux_aggregator.reader.markdown_links import beginning, prose
from specmux_aggregator.reader.page_frame import SiteParts, root_from
from specmux_aggregator.reader.pages import PROVENANCES
from specmux_aggregator.reader.state import QueryTooLong, ReaderState, Wants, limited_time
from specmux_aggregator.reader.tree import tree_html
from specmux_converters.document import Document
from specmux_converters.group_versions import GroupVersion, api_version, split
from specmux_converters.resources import GroupVersionKind
from specmux_tools.errors import SchemasError
from specmux_tools.explanation.kind_names import names_in
from specmux_tools.explanation.tree import MOST_FIELDS, FieldPlace, tree_of

RENDER_SECONDS: Final = 2.0  # of processor time


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentOrigin:
    """A published document, and where it comes from."""

    group_version: GroupVersion
    hash: str
    owner: str
    provenance: str


def origin_from(entry: SnapshotEntry) -> DocumentOrigin:
    return DocumentOrigin(
        group_version=entry.group_version,
        hash=str(entry.key.hash),
        owner=entry.owner,
        provenance=entry.offer.provenance.value,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentRequest:
    """``below``: the path of the page below the home page. ``name``: a kind, or a component; "" where the
    page is about the whole. ``other``: the document of a second version."""

    below: str
    origin: DocumentOrigin
    name: str = ""
    other: DocumentOrigin | None = None
    entries: tuple[bytes, ...] | None = None
    """Of the group-version in the change log, the newest first; None where no log is kept."""


Page = Callable[[SiteParts, ReaderState, DocumentRequest, Document], bytes]


def document_page(
    page: Page,
    site: SiteParts,
    request: DocumentRequest,
    coding: Coding,
    state: ReaderState,
    version: str,
    missing: tuple[str, ...],
) -> ReaderAnswer | QuestionRefusal | Wants:
    """A page that is made of a document, and of the index."""
    if state.version != version:
        return Wants(None)
    for origin in (request.origin, request.other):
        if origin is not None and state.document(origin.hash) is None:
            return Wants((origin.group_version,))
    document = state.document(request.origin.hash)
    if document is None:  # it made room for the other
        return QuestionRefusal(503, "these documents are too large to be read together")
    try:
        with limited_time(RENDER_SECONDS):
            return ReaderAnswer(encoded(page(site, state, request, document), coding))
    except SchemasError as error:
        return refusal_of(error)
    except (QueryTooLong, RecursionError):
        return QuestionRefusal(503, "this page takes too long to make")


def fields_of(request: DocumentRequest, document: Document, schema: Any, name: str) -> dict[str, Any]:
    tree = tree_of(document, FieldPlace((), schema, False))
    types = f"{root_from(request.below)}type/{quote(request.origin.group_version)}/"
    first, rest = beginning(tree.description, is_whole=True)
    return {
        "name": name,
        "description": Markup(prose(first) + prose(rest)),  # noqa: S704  # escaped there
        "tree": Markup(tree_html(tree, types=types)),  # noqa: S704  # escaped there
        "is_cut": tree.size > MOST_FIELDS,
        "most": MOST_FIELDS,
    }


def origin_of(request: DocumentRequest) -> dict[str, Any]:
    origin = request.origin
    return {
        "root": root_from(request.below),
        "key": origin.group_version,
        "version_text": text_of(origin.group_version),
        "owner": origin.owner,
        "provenance": PROVENANCES[origin.provenance],
    }


def text_of(key: GroupVersion) -> str:
    parts = split(key)
    return key if parts is None else api_version(*parts)


def siblings_of(document: Document, key: GroupVersion) -> list[str]:
    """Kinds of the document's resources."""
    return sorted({each.kind.kind for each in names_in(document, key) if each.is_resource})


def schema_file(kind: GroupVersionKind) -> str:
    """Below ``/schemas``."""
    return f"{kind.group or 'core'}/{kind.kind.lower()}_{kind.version}.json"


def unread_of(state: ReaderState, key: GroupVersion) -> list[GroupVersion]:
    """Of the same group, other group-versions that are published and not in the index."""
    group = (split(key) or ("",))[0]
    absent = state.published.keys() - state.index.documents.keys() - {key}
    return sorted(each for each in absent if (split(each) or ("",))[0] == group)
