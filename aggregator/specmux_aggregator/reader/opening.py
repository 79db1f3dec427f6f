"""All endpoints that answer through the reader, and Swagger UI beside them, by path."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from specmux_aggregator.endpoints.routes import Route
from specmux_aggregator.errors import InvalidConfig
from specmux_aggregator.reader.explain_endpoint import EXPLAIN, SEARCH, Explain, Search
from specmux_aggregator.reader.logged_changes import LoggedChanges
from specmux_aggregator.reader.page_answers import PREFIX
from specmux_aggregator.reader.page_endpoint import Ui
from specmux_aggregator.reader.reader_client import Reading
from specmux_aggregator.reader.requests import SiteParts
from specmux_aggregator.reader.swagger_assets import SwaggerUiUnusable, swagger_assets
from specmux_aggregator.reader.swagger_ui import SWAGGER, SwaggerUi


def question_routes(
    reading: Reading,
    *,
    status: Callable[[], Awaitable[bytes]],
    log: LoggedChanges | None,
    is_private: bool,
    site: SiteParts,
) -> list[Route]:
    """Routes, the longer of two paths first. Raises InvalidConfig if Swagger UI is configured but not
    installed."""
    found: list[Route] = []
    if site.has_swagger:
        try:
            found.append(Route(SWAGGER, SwaggerUi(swagger_assets(), is_private=is_private), "ui"))
        except SwaggerUiUnusable as error:
            raise InvalidConfig(str(error)) from error
    page = Ui(reading, status=status, log=log, is_private=is_private, site=site)
    return [
        *found,
        Route(EXPLAIN, Explain(reading, is_private=is_private), "explain"),
        Route(SEARCH, Search(reading, is_private=is_private), "search"),
        Route(PREFIX, page, "ui"),
    ]
