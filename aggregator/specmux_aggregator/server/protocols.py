"""Interfaces between the HTTP server and what lies behind it: answers, permission, and streaming from
backends.

Implementations see a request and a narrow view of its connection, and nothing else of the server.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

from aiohttp.http import RawRequestMessage
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader

from specmux_aggregator.http.messages import Request
from specmux_aggregator.http.prepared_answer import PreparedAnswer, TimeLines
from specmux_aggregator.server.admission import Admission
from specmux_aggregator.server.body_files import BodyFiles
from specmux_aggregator.server.input_limits import HeldByAll
from specmux_aggregator.server.malformed_log import AcceptComplaints
from specmux_aggregator.server.output_limits import UnreadBodies
from specmux_aggregator.server.stats import RequestStats


class WireRequest:
    """A parsed message, its body, and the connection it arrived on."""

    __slots__ = ("connection", "has_body", "message", "payload")

    def __init__(
        self, message: RawRequestMessage, payload: StreamReader, connection: ClientConnection
    ) -> None:
        self.message = message
        self.payload = payload
        self.has_body = payload is not EMPTY_PAYLOAD
        self.connection = connection


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer made by this service."""

    prepared: PreparedAnswer
    is_last: bool | None = None
    """Whether the connection ends with it; None: the request decides."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A request whose answer has to wait. Responders may subclass it to keep what they have decided."""

    request: Request


class ClientConnection(Protocol):
    """The view of a connection that answers have."""

    streamed: WireRequest | None
    """The request that a backend is answering; while it is set, a client that closes its side counts as
    gone."""
    certificate: object
    """The caller that the guard has read from the client's certificate, kept for its next request."""

    @property
    def connections(self) -> ListenerState: ...

    @property
    def transport(self) -> asyncio.Transport | None: ...

    @property
    def peername(self) -> object: ...

    @property
    def is_half_closed(self) -> bool:
        """Whether the client will send nothing more."""

    @property
    def is_ending(self) -> bool:
        """Whether the connection ends with the current answer; an endless answer ends now."""

    @property
    def is_drained(self) -> bool:
        """Whether the client will send nothing more and all that it sent was taken up."""

    def send(self, data: bytes) -> None:
        """Write a part of a streamed answer. Raises ConnectionResetError if the client is gone."""

    async def drain(self) -> None:
        """Wait until the client has taken what was sent. Raises ConnectionResetError if the client is
        gone."""

    def end_streaming(self) -> None:
        """Note the end of the backend's answer."""

    def cut_off(self) -> None:
        """Close the connection at once and drop unsent data."""


class ListenerState(Protocol):
    """State shared by the connections of one listener."""

    stats: RequestStats
    lines: TimeLines
    files: BodyFiles
    held: HeldByAll
    unread: UnreadBodies
    admission: Admission
    complaints: AcceptComplaints

    def add(self, connection: ClientConnection) -> None:
        """Register a connection that was admitted."""

    def remove(self, connection: ClientConnection) -> None:
        """Note a connection that was lost, admitted or not."""

    def cut_largest(self) -> None:
        """Cut the connections that hold the most, since all together hold too much."""


class Responder(Protocol):
    """Answers requests. An answer depends only on the Request, the generation and ``good_until``."""

    @property
    def generation(self) -> int:
        """Changes whenever an earlier answer may have become stale."""

    def immediate(self, request: Request) -> PreparedAnswer | Pending:
        """The answer if it is in memory."""

    async def respond(self, pending: Pending) -> PreparedAnswer:
        """The answer to what ``immediate`` returned as pending. Raises nothing but CancelledError."""


class Permission(Protocol):
    """Permission for a request, and how long it can be relied on."""

    def lasts(self, connection: ClientConnection, now: float) -> bool:
        """Whether a request with the same deciding part (deciding_head.py) on this connection may be answered
        without another check. Called for every remembered request. ``now``: monotonic seconds."""


class Guard(Protocol):
    """Decides who may have an answer. Called for every well-formed request, before anything else."""

    @property
    def takes_secrets(self) -> bool:
        """Whether requests carry credentials, which must not be kept as they are."""

    def permits(self, message: RawRequestMessage, connection: ClientConnection) -> Permission | None:
        """The permission if it is in memory; None leaves the decision to ``refusal``."""

    async def refusal(
        self, message: RawRequestMessage, connection: ClientConnection
    ) -> PreparedAnswer | None:
        """The answer to a caller without permission; None for one with. Raises nothing but CancelledError."""


async def is_still_permitted(guard: Guard | None, request: WireRequest) -> bool:
    """Whether an equal request on the same connection would be permitted now."""
    message, connection = request.message, request.connection
    if guard is None or guard.permits(message, connection) is not None:
        return True
    return await guard.refusal(message, connection) is None


class Response(Protocol):
    """An answer that arrives in pieces and writes itself."""

    @property
    def keep_alive(self) -> bool:
        """Whether the connection stays open after it."""

    async def write(self) -> None:
        """Write everything. Raises ConnectionError if the client or the backend is gone."""


class StreamingHandler(Protocol):
    """Handles requests that a backend answers, relayed by this service."""

    def claims(self, message: RawRequestMessage) -> bool:
        """Whether this request goes to a backend. Called for every request that is not for a document
        (``dispatch.DOCUMENTS``), so it must be cheap and not wait."""

    async def stream(self, request: WireRequest) -> Response | Reply:
        """The backend's streamed answer, or an answer of this service if there is none."""
