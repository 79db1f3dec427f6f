"""The HTTP server: a listener, and the way of a request from aiohttp to the service and back.

Two tiers answer with the same bytes. The ordinary one is here: right for every request. The accelerator
(accelerator.py) answers the plain ones earlier, and leaves all others to it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from aiohttp import hdrs
from aiohttp.http import HttpRequestParser, RawRequestMessage

from specmux_aggregator.config.settings import Listen
from specmux_aggregator.errors import SpecmuxError
from specmux_aggregator.http.prepared import Prepared, refusal
from specmux_aggregator.server import accelerator_check as canary
from specmux_aggregator.server.accelerator import AcceleratedConnection
from specmux_aggregator.server.accept_errors import AcceptErrors
from specmux_aggregator.server.certificates import Certificates
from specmux_aggregator.server.connection import Connection
from specmux_aggregator.server.connections import Connections
from specmux_aggregator.server.handshakes import Handshakes
from specmux_aggregator.server.memo import Answers
from specmux_aggregator.server.protocols import Guard, Responder, Response, StreamingHandler, WireRequest
from specmux_aggregator.server.refusals import path_of
from specmux_aggregator.server.requests import REFUSALS, fields_of, refused, request_of
from specmux_aggregator.server.responses import WireResponse
from specmux_aggregator.server.stats import RequestStats
from specmux_aggregator.tasks import log_failure

logger = logging.getLogger(__name__)

BACKLOG: Final = 1024
SWEEP_MAX: Final = 1.0  # seconds between looks at the connections, at most
CERTIFICATE_INTERVAL: Final = 1.0  # seconds between looks at the certificate's files
BODY_MAX: Final = 64 * 1024  # bytes of a request body after which the connection is not used again

HEALTH: Final = frozenset({"/livez", "/readyz"})
"""Never refused for too many others: who is restarted under load helps nobody."""

_CROWDED: Final = (429, "TooManyRequests", "too many requests are waiting here, please try again later")
_LATER: Final = [("Retry-After", "1")]
CROWDED: Final = refusal(*_CROWDED, fields=_LATER)
CROWDED_HEAD: Final = refusal(*_CROWDED, fields=_LATER, is_head=True)


class HTTPServer:
    """Serves one address. Start once, stop once, in one event loop."""

    def __init__(
        self,
        service: Responder,
        listen: Listen,
        *,
        stats: RequestStats | None = None,
        slow_request: float = 1.0,
        use_memo: bool = True,
        guard: Guard | None = None,
        client_ca_file: Path | None = None,
        streaming: StreamingHandler | None = None,
    ) -> None:
        """``slow_request``: seconds after which a request is logged. ``use_memo``: False for tests of the
        tiers below. Without ``guard`` everybody may ask; without ``streaming`` no request goes to a backend.
        ``client_ca_file``: whom clients may have their certificates from, for the guard to look at.
        """
        self._service = service
        self._listen = listen
        self.stats = RequestStats() if stats is None else stats
        self._slow_request = slow_request
        self._guard = guard
        self._client_ca_file = client_ca_file
        self._streaming = streaming
        self._answers = Answers(service, self.stats, use_memo=use_memo, is_guarded=guard is not None)
        self._is_stopping = False
        self._certificates: Certificates | None = None
        self._connections: Connections | None = None
        self._handshakes: Handshakes | None = None
        self._listener: asyncio.Server | None = None
        self._accept_errors: AcceptErrors | None = None
        self._watch: asyncio.Task[None] | None = None

    async def start(self) -> tuple[str, int]:
        """Listen; returns the address and port that were bound.

        Raises SpecmuxError when the address cannot be bound or aiohttp has no C parser, and InvalidConfig
        when the certificate cannot be used.
        """
        require_c_parser()
        listen = self._listen
        if listen.tls_cert_file is not None:
            self._certificates = Certificates(
                listen.tls_cert_file, listen.tls_key_file, client_ca_file=self._client_ca_file
            )
        self._connections = Connections(
            self._handle, listen, stats=self.stats, make_connection=await self._connection_maker()
        )
        made: Callable[[], asyncio.BaseProtocol] = self._connections
        if self._certificates is not None:
            self._handshakes = Handshakes(
                self._connections, self._connections.admission, self._certificates, listen
            )
            made = self._handshakes
        try:
            self._listener = await asyncio.get_running_loop().create_server(
                made, listen.address, listen.port, backlog=BACKLOG
            )
        except OSError as error:
            raise SpecmuxError(f"cannot listen on {listen.address}:{listen.port}: {error}") from error
        self._accept_errors = AcceptErrors(self.stats, self._connections.make_room)
        self._accept_errors.install(asyncio.get_running_loop())
        self._watch = asyncio.create_task(self._watch_over(self._connections))
        log_failure(self._watch, logger, "the deadlines of connections are no longer watched")
        host, port = self._listener.sockets[0].getsockname()[:2]
        return host, port

    async def _connection_maker(self) -> Callable[..., Connection]:
        if not self._listen.accelerator:
            return Connection
        reason = await canary.complaint()
        if reason is not None:
            logger.warning("the accelerator is off: %s", reason)
            return Connection
        return partial(AcceleratedConnection, answers=self._answers, is_ours=self._is_ours)

    async def stop(self) -> None:
        """Stop accepting, finish what runs within ``listen.shutdown_timeout``, then cut what is left."""
        self._is_stopping = True
        if self._watch is not None:
            self._watch.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watch
        if self._listener is not None:
            self._listener.close()
        if self._accept_errors is not None:
            self._accept_errors.remove(asyncio.get_running_loop())
        if self._handshakes is not None:
            await self._handshakes.stop()
        if self._connections is not None:
            await self._connections.drain(self._listen.shutdown_timeout)

    def forget_bodies(self) -> None:
        """Let go of the copies of bodies that are kept for the kernel."""
        if self._connections is not None:
            self._connections.files.clear()

    def _is_ours(self, message: RawRequestMessage, connection: Connection) -> bool:
        """Whether the accelerator may answer: leave is at hand, and no backend is to."""
        if self._streaming is not None and self._streaming.claims(message):
            return False
        return self._guard is None or self._guard.permits(message, connection)

    async def _handle(self, request: WireRequest) -> Response:
        connection = request.connection
        begun = connection.take_begun()
        if begun is not None:
            return WireResponse(
                begun.prepared,
                connection=connection,
                started=begun.started,
                is_last=self._is_stopping,
                sent=begun.sent,
            )
        started = time.monotonic()
        self.stats.in_flight += 1
        try:
            prepared = await self._refusal(request)
            if prepared is None and self._streaming is not None and self._streaming.claims(request.message):
                return await self._streamed(request, self._streaming)
            if prepared is None:
                prepared = await self._answer(request, started)
        except asyncio.CancelledError:
            self.stats.disconnects += 1
            raise
        finally:
            self.stats.in_flight -= 1
        closing = self._is_stopping or is_last(request, prepared)
        return WireResponse(prepared, connection=connection, started=started, is_last=closing)

    async def _streamed(self, request: WireRequest, streaming: StreamingHandler) -> Response:
        self.stats.in_flight_elsewhere += 1
        try:
            return await streaming.stream(request)
        finally:
            self.stats.in_flight_elsewhere -= 1

    async def _refusal(self, request: WireRequest) -> Prepared | None:
        message, connection = request.message, request.connection
        prepared = refused(message)
        if prepared is not None:
            self.stats.malformed += 1
            connection.connections.complaints.malformed(connection.peername, prepared.status)
            return prepared
        if self._guard is None or self._guard.permits(message, connection):
            return None
        return self._crowded(message) or await self._guard.refusal(message, connection)

    def _crowded(self, message: RawRequestMessage) -> Prepared | None:
        """The refusal of a request that would have to wait while as many as may wait do."""
        cap = self._listen.max_in_flight
        # Whatever needs no waiting has come and gone between two looks, so all others in flight wait.
        # The proxy counts by backend those that wait for an answer: a silent one crowds nobody out.
        waiting = self.stats.in_flight - self.stats.in_flight_elsewhere
        if not cap or waiting <= cap or message.path.partition("?")[0] in HEALTH:
            return None
        self.stats.requests_refused += 1
        return CROWDED_HEAD if message.method == "HEAD" else CROWDED

    async def _answer(self, request: WireRequest, now: float) -> Prepared:
        message = request.message
        slot = self._answers.find(message, now)
        if slot is not None:
            return slot.prepared
        crowded = self._crowded(message)
        if crowded is not None:
            return crowded
        prepared = await self._service.respond(request_of(fields_of(message)))
        seconds = time.monotonic() - now
        # 503 is a state that was logged when it began, and is counted: no line for each who asks meanwhile.
        if prepared.status >= 500 and prepared.status != 503:
            logger.warning("%s %s: %d", message.method, path_of(message), prepared.status)
        elif seconds > self._slow_request:
            logger.warning(
                "%s %s: %d after %.3f s", message.method, path_of(message), prepared.status, seconds
            )
        return prepared

    async def _watch_over(self, connections: Connections) -> None:
        listen = self._listen
        pause = min(SWEEP_MAX, listen.header_timeout / 4, listen.write_timeout / 4)
        look_at = time.monotonic() + CERTIFICATE_INTERVAL
        while True:
            await asyncio.sleep(pause)
            now = time.monotonic()
            connections.sweep(now)
            if self._certificates is not None and now >= look_at:
                look_at = now + CERTIFICATE_INTERVAL
                is_renewed = await asyncio.to_thread(self._certificates.refresh)
                if is_renewed and self._client_ca_file is not None:
                    # What a client proved before the change has to be proved again.
                    connections.close_when_answered()


def require_c_parser() -> None:
    """Raises SpecmuxError when aiohttp would parse in Python: slower, and with other rules for bad input."""
    if HttpRequestParser.__module__ != "aiohttp._http_parser":
        raise SpecmuxError(
            "aiohttp has no C parser here: it was built without a compiler, or AIOHTTP_NO_EXTENSIONS is set"
        )


def is_last(request: WireRequest, prepared: Prepared) -> bool:
    """Whether the connection ends with this answer."""
    message = request.message
    if message.should_close or prepared in REFUSALS:
        return True
    if message.upgrade or message.method == "CONNECT":
        # The parser stops at these, and drops what followed unless the protocol changes. It never does here.
        return True
    if not request.has_body:
        return False
    # The body of a request is dropped; one that is large or of unknown length is not worth the wait.
    return message.chunked or int(message.headers[hdrs.CONTENT_LENGTH]) > BODY_MAX
