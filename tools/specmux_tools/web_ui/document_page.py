"""The job of the reader process that makes a page of a document, and of the index."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from specmux_aggregator.http.content_codings import encoded
from specmux_aggregator.http.messages import Coding
from specmux_aggregator.reader.requests import (
    DocumentRequest,
    QuestionRefusal,
    ReaderAnswer,
    SiteParts,
    Wants,
)
from specmux_converters.document import Document
from specmux_tools.errors import SchemasError
from specmux_tools.processor_time import QueryTooLong, limited_time
from specmux_tools.reader.questions import refusal_of
from specmux_tools.reader.state import ReaderState
from specmux_tools.web_ui.document_pages.comparison import compare_page
from specmux_tools.web_ui.document_pages.group_version import group_version_page
from specmux_tools.web_ui.document_pages.kind import kind_page
from specmux_tools.web_ui.document_pages.type import type_page

RENDER_SECONDS: Final = 2.0  # of processor time

PAGES: Final[Mapping[str, Callable[[SiteParts, ReaderState, DocumentRequest, Document], bytes]]] = {
    "kind": kind_page,
    "type": type_page,
    "compare": compare_page,
    "group-version": group_version_page,
}


def document_page(
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
            return ReaderAnswer(encoded(PAGES[request.page](site, state, request, document), coding))
    except SchemasError as error:
        return refusal_of(error)
    except (QueryTooLong, RecursionError):
        return QuestionRefusal(503, "this page takes too long to make")
