"""All endpoints that answer through the reader, by path."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from specmux_aggregator.endpoints.routes import Route
from specmux_aggregator.reader.explain_endpoint import EXPLAIN, SEARCH, Explain, Search
from specmux_aggregator.reader.logged_changes import LoggedChanges
from specmux_aggregator.reader.page_answers import PREFIX
from specmux_aggregator.reader.page_endpoint import Ui
from specmux_aggregator.reader.reader_client import Reading
from specmux_aggregator.reader.requests import SiteParts


def question_routes(
    reading: Reading,
    *,
    status: Callable[[], Awaitable[bytes]],
    log: LoggedChanges | None,
    is_private: bool,
    site: SiteParts,
) -> list[Route]:
    page = Ui(reading, status=status, log=log, is_private=is_private, site=site)
    return [
        Route(EXPLAIN, Explain(reading, is_private=is_private), "explain"),
        Route(SEARCH, Search(reading, is_private=is_private), "search"),
        Route(PREFIX, page, "ui"),
    ]
