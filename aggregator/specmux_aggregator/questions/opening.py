"""All endpoints that answer from documents through the reader, and Swagger UI beside them, by path."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from specmux_aggregator.endpoints.service import Endpoint
from specmux_aggregator.errors import InvalidConfig
from specmux_aggregator.questions.explain_endpoint import EXPLAIN, SEARCH, Explain, Search
from specmux_aggregator.questions.page_endpoint import PREFIX, LoggedChanges, Ui
from specmux_aggregator.questions.reading import Reading
from specmux_aggregator.questions.swagger_assets import SwaggerUiUnusable, swagger_assets
from specmux_aggregator.questions.swagger_ui import SWAGGER, SwaggerUi


def reading_endpoints(
    reading: Reading,
    *,
    status: Callable[[], Awaitable[bytes]],
    log: LoggedChanges | None,
    is_private: bool,
    has_swagger: bool,
) -> dict[str, Endpoint]:
    """The longer of two paths first. Raises InvalidConfig where Swagger UI is asked for and not there."""
    found: dict[str, Endpoint] = {}
    if has_swagger:
        try:
            found[SWAGGER] = SwaggerUi(swagger_assets(), is_private=is_private)
        except SwaggerUiUnusable as error:
            raise InvalidConfig(str(error)) from error
    return found | {
        EXPLAIN: Explain(reading, is_private=is_private),
        SEARCH: Search(reading, is_private=is_private),
        PREFIX: Ui(reading, status=status, log=log, is_private=is_private, has_swagger=has_swagger),
    }
