"""The HTTP server: listens on one address, from start to stop."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from aiohttp.http import HttpRequestParser

from specmux_aggregator.config.settings import ListenSettings
from specmux_aggregator.errors import CannotListen, SpecmuxError
from specmux_aggregator.http.prepared_answer import TimeLines, refusal
from specmux_aggregator.server.admission import Admission
from specmux_aggregator.server.certificates import Certificates
from specmux_aggregator.server.connections import Connections
from specmux_aggregator.server.dispatch import Dispatch
from specmux_aggregator.server.memo import Answers
from specmux_aggregator.server.outgoing import CLOSE
from specmux_aggregator.server.output_limits import UNREAD_MAX
from specmux_aggregator.server.protocols import Guard, Responder, StreamingHandler
from specmux_aggregator.server.stats import RequestStats
from specmux_aggregator.server.tls_transport import Records, TLSTransport
from specmux_aggregator.tasks import finish, log_failure

if TYPE_CHECKING:  # imported where there are several processes
    from specmux_aggregator.server.acceptors.passing import Acceptors

# asyncio reports every failed attempt, a thousand a second, each with a traceback.

TOLD: Final = "socket.accept() out of system resource"
"""The message of asyncio for this failure (selector_events.py)."""

QUIET: Final = 60.0
"""Seconds between two lines in the log."""

PAUSE: Final = 0.5
"""Seconds between two attempts to make room."""

ROOM: Final = 32
"""Idle connections to close at a time. A health probe needs one of these places."""


class AcceptErrors:
    """The exception handler of one event loop; passes on everything else to the previous handler."""

    def __init__(self, stats: RequestStats, make_room: Callable[[], bool]) -> None:
        """``make_room`` closes an idle connection; False if there is none."""
        self._stats = stats
        self._make_room = make_room
        self._before: Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object] | None = None
        self._told_at = self._room_at = float("-inf")

    def install(self, loop: asyncio.AbstractEventLoop) -> None:
        self._before = loop.get_exception_handler()
        loop.set_exception_handler(self)

    def remove(self, loop: asyncio.AbstractEventLoop) -> None:
        if loop.get_exception_handler() is self:
            loop.set_exception_handler(self._before)

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if context.get("message") == TOLD:
            self._note_failure(context.get("exception"))
        elif self._before is not None:
            self._before(loop, context)
        else:
            loop.default_exception_handler(context)

    def _note_failure(self, error: object) -> None:
        self._stats.accept_errors += 1
        now = time.monotonic()
        if now - self._told_at >= QUIET:
            self._told_at = now
            reason = error.strerror if isinstance(error, OSError) else error
            logger.error(
                "no more connections can be accepted: %s; raise the limit of open files, or lower"
                " listen.max_connections",
                reason,
            )
        if now - self._room_at >= PAUSE:
            self._room_at = now
            for _ in range(ROOM):
                if not self._make_room():
                    break


# Each is counted and bounded in time from its first byte, and becomes a ``Connection`` once it succeeds.

MISDIRECTED: Final = refusal(
    400, "BadRequest", "this port speaks HTTPS, and the request came over plain HTTP"
)


class ClientHandshakes:
    """The handshakes of one TLS listener. Lives on one event loop."""

    def __init__(
        self,
        make_connection: Callable[[], asyncio.Protocol],
        admission: Admission,
        certificates: Certificates,
        listen: ListenSettings,
    ) -> None:
        """``make_connection``: creates the connection of a client whose handshake succeeded."""
        self.records = Records()
        self._make_connection = make_connection
        self._admission = admission
        self._certificates = certificates
        self._timeout = listen.header_timeout
        self._lines = TimeLines()
        self._begun: dict[TLSTransport, float] = {}
        """When each began, in monotonic seconds, oldest first."""

    def begin(self, transport: TLSTransport, peer: object) -> ssl.SSLContext | None:
        if not self._admission.admit(transport, peer):
            return None
        self._begun[transport] = time.monotonic()
        return self._certificates.context

    def succeed(self, transport: TLSTransport, tls: ssl.SSLObject) -> asyncio.Protocol | None:
        # The CA that verified the client may have been replaced meanwhile.
        if not self._certificates.is_current(tls):
            self.end(transport)
            return None
        del self._begun[transport]
        connection = self._make_connection()
        self._admission.pass_on(transport, connection)
        return connection

    def answer_misdirected(self) -> bytes:
        lines = self._lines.end_of_head(MISDIRECTED, time.monotonic())
        return b"".join((MISDIRECTED.head, CLOSE, lines, MISDIRECTED.body))

    def end(self, transport: TLSTransport) -> None:
        self._begun.pop(transport, None)
        self._admission.release(transport)

    def sweep(self, now: float) -> None:
        """Cut the handshakes that take too long. ``now`` is monotonic seconds."""
        for transport, begun in tuple(self._begun.items()):
            if now - begun <= self._timeout:
                break
            transport.abort()

    def stop(self) -> None:
        """Cut every handshake that is not done."""
        for transport in tuple(self._begun):
            transport.abort()


logger = logging.getLogger(__name__)

BACKLOG: Final = 1024
TURNS_OF_ACCEPTING: Final = 3
"""Turns of the event loop until asyncio has made connections of all that it accepted: its listener has to be
open for that."""
SWEEP_MAX: Final = 1.0  # seconds between looks at the connections, at most
CERTIFICATE_INTERVAL: Final = 1.0  # seconds between looks at the certificate's files


class HTTPServer:
    """Serves one address. Start once and stop once, on one event loop."""

    def __init__(
        self,
        service: Responder,
        listen: ListenSettings,
        *,
        sockets: Sequence[socket.socket] = (),
        slow_request: float = 1.0,
        use_memo: bool = True,
        guard: Guard | None = None,
        client_ca_file: Path | None = None,
        streaming: Sequence[StreamingHandler] = (),
        unread_max: int = UNREAD_MAX,
    ) -> None:
        """``sockets``: listen already, and are served and closed in place of the address and port of
        ``listen``. ``slow_request``: seconds after which a request is logged. ``use_memo``: False for tests
        of what lies behind the memo. ``guard``: None admits everybody. ``streaming``: handlers that may claim
        a request before the service. ``client_ca_file``: the CA of client certificates, which the guard
        reads. ``unread_max``: bytes of large answers, over all connections, that clients have not read to
        the end."""
        self._listen = listen
        self._sockets = sockets
        self.stats = RequestStats()
        self._client_ca_file = client_ca_file
        self._unread_max = unread_max
        self._dispatch = Dispatch(
            service,
            Answers(service, self.stats, use_memo=use_memo, guard=guard),
            stats=self.stats,
            max_in_flight=listen.max_in_flight,
            slow_request=slow_request,
            guard=guard,
            streaming=streaming,
        )
        self._certificates: Certificates | None = None
        self._connections: Connections | None = None
        self._handshakes: ClientHandshakes | None = None
        self._listeners: list[asyncio.Server] = []
        self._accept_errors: AcceptErrors | None = None
        self.acceptors: Acceptors | None = None
        """Processes that share the work; set before the start."""
        self._watch: asyncio.Task[None] | None = None

    async def start(self) -> tuple[str, int]:
        """Listen; returns the address and port that were bound.

        Raises SpecmuxError if the address cannot be bound or aiohttp has no C parser, and InvalidConfig if
        the certificate cannot be used.
        """
        require_c_parser()
        listen = self._listen
        if listen.tls_cert_file is not None:
            self._certificates = Certificates(
                listen.tls_cert_file, listen.tls_key_file, client_ca_file=self._client_ca_file
            )
        self._connections = Connections(self._dispatch, listen, stats=self.stats, unread_max=self._unread_max)
        if self.acceptors is not None:
            self.acceptors.serve(self._connections, self._dispatch)
        made: Callable[[], asyncio.BaseProtocol] = self._connections.made
        if self._certificates is not None:
            self._handshakes = ClientHandshakes(
                self._connections.made, self._connections.admission, self._certificates, listen
            )
            made = partial(TLSTransport, self._handshakes)
        try:
            await self._bind(made)
        except OSError as error:
            where = f"{listen.address}:{listen.port}"
            raise CannotListen(f"cannot listen on {where}: {_reason(error)}") from error
        self._accept_errors = AcceptErrors(self.stats, self._connections.make_room)
        self._accept_errors.install(asyncio.get_running_loop())
        self._watch = asyncio.create_task(self._watch_over(self._connections))
        log_failure(self._watch, logger, "the deadlines of connections are no longer watched")
        return self.bound[0]

    @property
    def bound(self) -> list[tuple[str, int]]:
        """Every address and port that clients can connect to."""
        return [each.getsockname()[:2] for listener in self._listeners for each in listener.sockets]

    async def _bind(self, made: Callable[[], asyncio.BaseProtocol]) -> None:
        listen, loop = self._listen, asyncio.get_running_loop()
        for handed in self._sockets:
            self._listeners.append(await loop.create_server(made, sock=handed, backlog=BACKLOG))
        if not self._sockets:
            new = await loop.create_server(made, listen.address, listen.port, backlog=BACKLOG)
            self._listeners.append(new)
        for listener in self._listeners:
            for one in listener.sockets:
                # Accepted sockets inherit it: a client that vanished silently is noticed eventually.
                one.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)

    async def stop(self) -> None:
        """Stop accepting, let running requests finish within ``listen.shutdown_timeout``, then cut the
        rest."""
        self._dispatch.is_stopping = True
        self._dispatch.answers.stop()
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.gather(self._watch, return_exceptions=True)
        await finish(
            logger,
            self._close_listeners,
            None if self.acceptors is None else partial(self.acceptors.stop, self._listen.shutdown_timeout),
            None
            if self._accept_errors is None
            else partial(self._accept_errors.remove, asyncio.get_running_loop()),
            None if self._handshakes is None else self._handshakes.stop,
            None
            if self._connections is None
            else partial(self._connections.drain, self._listen.shutdown_timeout),
        )

    async def _close_listeners(self) -> None:
        """Accept no more, after all that was accepted became connections: those are drained."""
        loop = asyncio.get_running_loop()
        for listener in self._listeners:
            for one in listener.sockets:
                loop.remove_reader(one)
        for _ in range(TURNS_OF_ACCEPTING):
            await asyncio.sleep(0)
        for listener in self._listeners:
            listener.close()

    def forget_bodies(self) -> None:
        """Close the memory files of bodies."""
        if self._connections is not None:
            self._connections.files.clear()

    async def _watch_over(self, connections: Connections) -> None:
        listen = self._listen
        shortest = min(listen.header_timeout, listen.write_timeout, listen.keepalive_timeout)
        pause = min(SWEEP_MAX, shortest / 4)
        look_at = time.monotonic() + CERTIFICATE_INTERVAL
        while True:
            await asyncio.sleep(pause)
            now = time.monotonic()
            connections.sweep(now)
            if self._handshakes is not None:
                self._handshakes.sweep(now)
            if self._certificates is not None and now >= look_at:
                look_at = now + CERTIFICATE_INTERVAL
                is_renewed = await asyncio.to_thread(self._certificates.refresh)
                if is_renewed and self._client_ca_file is not None:
                    # A client verified under the previous CA must be verified again.
                    connections.close_when_answered()


def require_c_parser() -> None:
    """Raises SpecmuxError if aiohttp would parse in Python: slower, and with other rules for bad input."""
    if HttpRequestParser.__module__ != "aiohttp._http_parser":
        raise SpecmuxError(
            "aiohttp has no C parser here: it was built without a compiler, or AIOHTTP_NO_EXTENSIONS is set"
        )


def _reason(error: OSError) -> str:
    """A short description; asyncio's own text repeats the address in another form."""
    if isinstance(error, socket.gaierror):
        return "the host name does not resolve"
    said = os.strerror(error.errno).lower() if error.errno else str(error)
    return f"{said}; port 0 takes a free one" if error.errno == errno.EADDRINUSE else said
