"""Count reads of the merged ``/openapi/v2`` by caller, then let the service answer.

A remembered request does not identify its sender, so these requests are claimed before the memo.
"""

from __future__ import annotations

from aiohttp.http import RawRequestMessage

from specmux_aggregator.endpoints.routes import READ
from specmux_aggregator.http.prepared_answer import PreparedAnswer
from specmux_aggregator.metrics.swagger_readers import SwaggerReaders
from specmux_aggregator.model.document_urls import SWAGGER_PATH
from specmux_aggregator.server.protocols import Reply, Responder, WireRequest
from specmux_aggregator.server.requests import request_of, target_of


class SwaggerReads:
    """Implements the server's ``StreamingHandler``."""

    def __init__(self, service: Responder, readers: SwaggerReaders) -> None:
        self._service = service
        self._readers = readers

    def claims(self, message: RawRequestMessage) -> bool:
        return message.method in READ and target_of(message).partition("?")[0] == SWAGGER_PATH

    async def stream(self, request: WireRequest) -> Reply:
        headers = request.message.headers
        self._readers.count(headers.get("Accept"), headers.get("User-Agent"))
        found = self._service.immediate(request_of(request.message))
        return Reply(found if isinstance(found, PreparedAnswer) else await self._service.respond(found))
