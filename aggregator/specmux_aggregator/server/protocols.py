"""What the HTTP server asks of those behind it: answers, the permission to answer, the way to a backend.

They are given a request and a narrow view of its connection, and know no more of the server.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Protocol

from aiohttp.http import RawRequestMessage
from aiohttp.streams import EMPTY_PAYLOAD, StreamReader

from specmux_aggregator.http.messages import Request
from specmux_aggregator.http.prepared import PreparedAnswer, TimeLines
from specmux_aggregator.server.admission import Admission
from specmux_aggregator.server.body_files import BodyFiles
from specmux_aggregator.server.complaints import AcceptComplaints
from specmux_aggregator.server.held import HeldByAll
from specmux_aggregator.server.stats import RequestStats
from specmux_aggregator.server.unread import UnreadBodies


class WireRequest:
    """One parsed message, the body that follows it, and the connection it came by."""

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
    """An answer of our own."""

    prepared: PreparedAnswer
    is_last: bool | None = None
    """Whether the connection ends with it; None: its request says so."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A request whose answer has to be waited for. Who answers may note in a kind of its own what it has
    decided."""

    request: Request


class ClientConnection(Protocol):
    """What answers may know of the connection they leave by, and do with it."""

    streamed: WireRequest | None
    """The request that a backend is answering: then a client that closes its side has left."""
    certificate: object
    """What the guard has found out of the client's certificate, for the next request; the guard's alone."""

    @property
    def connections(self) -> ListenerState: ...

    @property
    def transport(self) -> asyncio.Transport | None: ...

    @property
    def peername(self) -> object: ...

    @property
    def is_half_closed(self) -> bool:
        """The client will send nothing more."""

    @property
    def is_ending(self) -> bool:
        """It ends with the running answer: one that has no end of its own ends now."""

    @property
    def is_drained(self) -> bool:
        """The client will send nothing more, and all it sent was taken up."""

    def send(self, data: bytes) -> None:
        """Write a part of an answer that streams in. Raises ConnectionResetError without a client."""

    async def drain(self) -> None:
        """Wait until the client took what was sent. Raises ConnectionResetError without a client."""

    def end_streaming(self) -> None:
        """The backend's answer is written."""

    def cut_off(self) -> None:
        """End the connection at once, whatever waits to be written."""


class ListenerState(Protocol):
    """What the connections of one listener share."""

    stats: RequestStats
    lines: TimeLines
    files: BodyFiles
    held: HeldByAll
    unread: UnreadBodies
    admission: Admission
    complaints: AcceptComplaints

    def opened(self, connection: ClientConnection) -> None:
        """It was admitted."""

    def closed(self, connection: ClientConnection) -> None:
        """It is lost, whether it was admitted or not."""

    def cut_largest(self) -> None:
        """More is held of requests than may be: cut those that hold most."""


class Responder(Protocol):
    """What answers. Its answers depend on nothing but the Request, the generation and ``good_until``."""

    @property
    def generation(self) -> int:
        """Changes whenever an answer that was given may have become stale."""

    def immediate(self, request: Request) -> PreparedAnswer | Pending:
        """The answer if it is at hand."""

    async def respond(self, pending: Pending) -> PreparedAnswer:
        """The answer to what ``immediate`` had none for, always. Raises nothing but CancelledError."""


class Permission(Protocol):
    """That a request may be answered, and for how long that can be relied on."""

    def lasts(self, connection: ClientConnection, now: float) -> bool:
        """Whether a request with the same deciding part (heads.py), on this connection, may be answered as
        well, without another look at it. Asked about every request that is remembered. ``now``: monotonic
        seconds."""


class Guard(Protocol):
    """Who may have an answer. Asked about every request that is well formed, before anything else is."""

    @property
    def takes_secrets(self) -> bool:
        """Whether requests carry what must not be kept as it is."""

    def permits(self, message: RawRequestMessage, connection: ClientConnection) -> Permission | None:
        """The permission that is at hand; None says nothing: then ``refusal`` decides."""

    async def refusal(
        self, message: RawRequestMessage, connection: ClientConnection
    ) -> PreparedAnswer | None:
        """The answer to a caller that may not; None for one that may. Raises nothing but CancelledError."""


async def is_still_permitted(guard: Guard | None, request: WireRequest) -> bool:
    """Whether a new request like this one, on its connection, would be let in now."""
    message, connection = request.message, request.connection
    if guard is None or guard.permits(message, connection) is not None:
        return True
    return await guard.refusal(message, connection) is None


class Response(Protocol):
    """An answer that comes piece by piece, and is written by whoever has the pieces."""

    @property
    def keep_alive(self) -> bool:
        """Whether the connection goes on after it."""

    async def write(self) -> None:
        """Write everything. Raises ConnectionError when the client, or who answers, is gone."""


class StreamingHandler(Protocol):
    """The way of requests that a backend answers itself, through us."""

    def claims(self, message: RawRequestMessage) -> bool:
        """Whether this request goes to a backend. Asked about every request that is not for a
        document (``dispatch.DOCUMENTS``): cheap, and without waiting."""

    async def stream(self, request: WireRequest) -> Response | Reply:
        """The backend's answer as it streams in, or our own where there is none."""
