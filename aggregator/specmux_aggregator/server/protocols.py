"""What the HTTP server asks of those behind it: answers, leave to answer, and the way to a backend."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from aiohttp.http import RawRequestMessage

from specmux_aggregator.http.messages import Request
from specmux_aggregator.http.prepared import Prepared, TimeLines
from specmux_aggregator.server.admission import Admission
from specmux_aggregator.server.held import HeldByAll
from specmux_aggregator.server.sending import BodyFiles
from specmux_aggregator.server.stats import RequestStats

if TYPE_CHECKING:
    from specmux_aggregator.server.connection import Connection, WireRequest


class Service(Protocol):
    """What answers. Its answers depend on nothing but the Request, the generation and ``good_until``."""

    @property
    def generation(self) -> int:
        """Changes whenever an answer that was given may have become stale."""

    def immediate(self, request: Request) -> Prepared | None:
        """The answer if it is at hand; None if it has to be waited for."""

    async def respond(self, request: Request) -> Prepared:
        """The answer, always. Raises nothing but CancelledError."""


class Guard(Protocol):
    """Who may have an answer. Asked about every request that is well formed, before anything else is."""

    def permits(self, message: RawRequestMessage, connection: Connection) -> bool:
        """Whether leave is at hand; False says nothing: then ``refusal`` decides."""

    async def refusal(self, message: RawRequestMessage, connection: Connection) -> Prepared | None:
        """The answer to a caller that may not; None for one that may. Raises nothing but CancelledError."""


class Response(Protocol):
    """What aiohttp's connection asks of a response."""

    @property
    def keep_alive(self) -> bool: ...

    async def prepare(self, request: WireRequest) -> None: ...

    async def write_eof(self) -> None: ...


class Relay(Protocol):
    """The way of requests that a backend answers itself, through us."""

    def claims(self, message: RawRequestMessage) -> bool:
        """Whether this request goes to a backend. Asked about every request: cheap, and without waiting."""

    async def relay(self, request: WireRequest) -> Response:
        """The backend's answer as it streams in, or our own where there is none."""


class Shared(Protocol):
    """What the connections of one listener share."""

    stats: RequestStats
    lines: TimeLines
    files: BodyFiles
    held: HeldByAll
    admission: Admission

    def opened(self, connection: Connection) -> None:
        """It was admitted."""

    def closed(self, connection: Connection) -> None:
        """It is lost, whether it was admitted or not."""

    def cut_largest(self) -> None:
        """More is held of requests than may be: cut those that hold most."""
