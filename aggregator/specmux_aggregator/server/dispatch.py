"""Decide who answers a message: refuse it, check permission, pass it on to a backend, or ask the service.

aiohttp's parser (llhttp) has already refused broken framing and non-ASCII targets. What remains to refuse is
well framed: an unsupported version, an invalid Host, an unknown expectation.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from aiohttp import HttpVersion10, HttpVersion11, hdrs
from aiohttp.hdrs import ACCEPT, ACCEPT_ENCODING, EXPECT, HOST, IF_MATCH, IF_NONE_MATCH, TRANSFER_ENCODING
from aiohttp.http import RawRequestMessage
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader

from specmux_aggregator.http.messages import Request
from specmux_aggregator.http.prepared_answer import PreparedAnswer, refusal
from specmux_aggregator.http.trace_context import FIELD, trace_request
from specmux_aggregator.server.memo import AVAILABLE_DICTIONARY, Answers, Slot
from specmux_aggregator.server.protocols import (
    ClientConnection,
    Guard,
    Pending,
    Reply,
    Responder,
    Response,
    StreamingHandler,
    WireRequest,
)
from specmux_aggregator.server.refusals import (
    BAD_EXPECTATION,
    BAD_FRAMING,
    BAD_HOST,
    BAD_VERSION,
    FAILED,
    REFUSALS,
    REFUSED_HEADS,
    path_of,
)
from specmux_aggregator.server.stats import RequestStats

logger = logging.getLogger(__name__)

BODY_MAX: Final = 64 * 1024  # bytes of a request body after which the connection is not used again

DOCUMENTS: Final = "/openapi/v3"
"""Targets with this prefix, nearly all, belong to the service; handlers are not asked."""

HEALTH: Final = frozenset({"/livez", "/readyz"})
"""Never refused because of load: restarting a busy replica helps nobody."""

_CROWDED: Final = (429, "TooManyRequests", "too many requests are waiting here, please try again later")
_LATER: Final = [("Retry-After", "1")]
CROWDED: Final = refusal(*_CROWDED, fields=_LATER)
CROWDED_HEAD: Final = refusal(*_CROWDED, fields=_LATER, is_head=True)

ENDING: Final = REFUSALS | {FAILED}

VERSIONS: Final = (HttpVersion11, HttpVersion10)

URI_HOST: Final = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[0-9A-Za-z\-._~!$&'()*+,;=%]*)(?::[0-9]*)?\Z")
"""uri-host [":" port] (RFC 9110 7.2); empty is allowed."""


class Dispatch:
    """Shared by all connections of one server."""

    def __init__(
        self,
        service: Responder,
        answers: Answers,
        *,
        stats: RequestStats,
        max_in_flight: int,
        slow_request: float,
        guard: Guard | None = None,
        streaming: Sequence[StreamingHandler] = (),
    ) -> None:
        """``max_in_flight``: requests that may wait; 0: unlimited. ``slow_request``: seconds after which a
        request is logged. ``guard``: None admits everybody. ``streaming``: handlers that may claim a request
        before the service; the first claim wins."""
        self.answers = answers
        self.is_stopping = False
        """Every answer is the last one of its connection."""
        self._service = service
        self._stats = stats
        self._max_in_flight = max_in_flight
        self._slow_request = slow_request
        self._guard = guard
        self._streaming = streaming

    def immediate(
        self, message: RawRequestMessage, connection: ClientConnection, now: float
    ) -> Slot | Pending | None:
        """The answer to a message without a body if it is in memory; None if other handlers come first."""
        try:
            return self._immediate(message, connection, now)
        except Exception:  # a bug
            logger.exception("%s %s failed", message.method, path_of(message))
            return self.answers.slot(FAILED)

    def _immediate(
        self, message: RawRequestMessage, connection: ClientConnection, now: float
    ) -> Slot | Pending | None:
        prepared = self._refuse(message, connection)
        if prepared is not None:
            return self.answers.slot(prepared)
        if self._claimant(message) is not None:
            return None
        if self._guard is not None and self._guard.permits(message, connection) is None:
            return None
        found = self.answers.find(request_of(message), now)
        if isinstance(found, Slot):
            self._stats.at_once += 1
        return found

    async def respond(
        self, request: WireRequest, started: float, pending: Pending | None = None
    ) -> Reply | Response:
        """The answer to a message that has to wait. ``started``: monotonic seconds. ``pending``: what
        ``immediate`` returned."""
        parents = request.message.headers.getall(FIELD, ())
        if not parents:
            return await self._respond(request, started, pending)
        with trace_request(parents):
            return await self._respond(request, started, pending)

    async def _respond(
        self, request: WireRequest, started: float, pending: Pending | None
    ) -> Reply | Response:
        message, connection = request.message, request.connection
        self._stats.in_flight += 1
        try:
            prepared = None
            if pending is None:
                prepared = self._refuse(message, connection) or await self._forbidden(message, connection)
                if prepared is None and (claimant := self._claimant(message)) is not None:
                    return await self._stream(request, claimant)
            if prepared is None:
                prepared = await self._answer(message, started, pending)
        except asyncio.CancelledError:
            self._stats.disconnects += 1
            raise
        finally:
            self._stats.in_flight -= 1
        return Reply(prepared)

    def _claimant(self, message: RawRequestMessage) -> StreamingHandler | None:
        if not message.path.startswith(DOCUMENTS):
            for handler in self._streaming:
                if handler.claims(message):
                    return handler
        return None

    async def _stream(self, request: WireRequest, streaming: StreamingHandler) -> Reply | Response:
        self._stats.in_flight_elsewhere += 1
        try:
            return await streaming.stream(request)
        finally:
            self._stats.in_flight_elsewhere -= 1

    def _refuse(self, message: RawRequestMessage, connection: ClientConnection) -> PreparedAnswer | None:
        prepared = refuse_message(message)
        if prepared is not None:
            self._stats.malformed += 1
            connection.connections.complaints.log_malformed(connection.peername, prepared.status)
        return prepared

    async def _forbidden(
        self, message: RawRequestMessage, connection: ClientConnection
    ) -> PreparedAnswer | None:
        if self._guard is None or self._guard.permits(message, connection) is not None:
            return None
        return self._refuse_crowd(message) or await self._guard.refusal(message, connection)

    def _refuse_crowd(self, message: RawRequestMessage) -> PreparedAnswer | None:
        """The refusal of a request that would have to wait while ``max_in_flight`` others do."""
        # Only requests that wait are in flight here. Those that wait for a backend are counted by the proxy,
        # per backend, so a silent backend does not crowd out the rest.
        waiting = self._stats.in_flight - self._stats.in_flight_elsewhere
        cap = self._max_in_flight
        if not cap or waiting <= cap or message.path.partition("?")[0] in HEALTH:
            return None
        self._stats.requests_refused += 1
        return CROWDED_HEAD if message.method == "HEAD" else CROWDED

    async def _answer(
        self, message: RawRequestMessage, started: float, pending: Pending | None
    ) -> PreparedAnswer:
        found = pending or self.answers.find(request_of(message), started)
        if isinstance(found, Slot):
            return found.prepared
        crowded = self._refuse_crowd(message)
        if crowded is not None:
            return crowded
        prepared = await self._service.respond(found)
        seconds = time.monotonic() - started
        # A 503 is a state: it was logged when it began and is counted, so it needs no line per request.
        if prepared.status >= 500 and prepared.status != 503:
            logger.warning("%s %s: %d", message.method, path_of(message), prepared.status)
        elif seconds > self._slow_request:
            logger.warning(
                "%s %s: %d after %.3f s", message.method, path_of(message), prepared.status, seconds
            )
        return prepared


def ends(message: RawRequestMessage, payload: StreamReader, prepared: PreparedAnswer) -> bool:
    """Whether the connection ends with this answer."""
    if message.should_close or prepared in ENDING:
        return True
    if message.upgrade or message.method == "CONNECT":
        # The parser stops at these requests and drops what follows, since the protocol never changes here.
        return True
    if payload is EMPTY_PAYLOAD:
        return False
    # A request body is dropped; if it is large or its length unknown, closing is cheaper than reading it.
    return message.chunked or int(message.headers[hdrs.CONTENT_LENGTH]) > BODY_MAX


def refuse_message(message: RawRequestMessage) -> PreparedAnswer | None:
    """The answer to a message that must not reach the service; None for all others."""
    found = _find_refusal(message)
    return REFUSED_HEADS[found] if found is not None and message.method == "HEAD" else found


def _find_refusal(message: RawRequestMessage) -> PreparedAnswer | None:
    headers = message.headers
    if message.version not in VERSIONS:
        return BAD_VERSION
    if TRANSFER_ENCODING in headers and not headers[TRANSFER_ENCODING].strip():
        # llhttp assumes no body and would parse what follows as a request (RFC 9112 6.3: 400, and close).
        return BAD_FRAMING
    if not is_host(headers.get(HOST, "")):
        return BAD_HOST
    # 100 (Continue) is not sent here: no request body is needed, so the final answer can be sent at once. An
    # expectation in HTTP/1.0 is ignored (RFC 9110 10.1.1).
    expected = headers.getall(EXPECT, ()) if message.version == HttpVersion11 else ()
    if expected and any(value.lower() != "100-continue" for value in expected):
        return BAD_EXPECTATION
    return None


def request_of(message: RawRequestMessage) -> Request:
    """The fields as received, repeated ones joined (RFC 9110 5.3)."""
    getall = message.headers.getall
    path, _, query = target_of(message).partition("?")
    return Request(
        message.method,
        path,
        query,
        _join_values(getall(ACCEPT, None)),
        _join_values(getall(ACCEPT_ENCODING, None)),
        _join_values(getall(IF_NONE_MATCH, None)),
        _join_values(getall(IF_MATCH, None)),
        _dictionary_of(message) if AVAILABLE_DICTIONARY in message.headers else None,
    )


def _dictionary_of(message: RawRequestMessage) -> str | None:
    """The dictionary that a request names. None of a page of another origin, to which the length of an answer
    must tell nothing about the document (RFC 9842 9.3.3)."""
    getall = message.headers.getall
    if message.headers.get("Sec-Fetch-Site", "none") not in ("none", "same-origin"):
        return None
    named = _join_values(getall("Dictionary-ID", None)) or ""
    return f"{_join_values(getall(AVAILABLE_DICTIONARY))} {named}"


def target_of(message: RawRequestMessage) -> str:
    """Path and query as received, without the origin of an absolute-form target."""
    target = message.path
    if target.startswith("/"):
        return target
    # RFC 9112 3.2.2 requires the absolute form to be understood. "*" and an authority contain no path.
    url = message.url
    return f"{url.raw_path}?{url.raw_query_string}" if url.absolute and url.scheme else target


@lru_cache(maxsize=256)
def is_host(value: str) -> bool:
    return len(value) <= 255 + 6 and URI_HOST.match(value) is not None


def _join_values(values: list[str] | None) -> str | None:
    if values is None:
        return None
    value = values[0] if len(values) == 1 else ", ".join(values)
    if value.isascii():
        return value
    # Bytes that are not UTF-8 arrive as surrogates, which cannot be encoded. Values are opaque bytes (RFC
    # 9110 5.5), so each becomes one character.
    return value.encode("utf-8", "surrogateescape").decode("latin-1")
