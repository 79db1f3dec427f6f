"""The HTTP server: listens on one address, from start to stop."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from aiohttp.http import HttpRequestParser

from specmux_aggregator.config.settings import ListenSettings
from specmux_aggregator.errors import SpecmuxError
from specmux_aggregator.server.accept_errors import AcceptErrors
from specmux_aggregator.server.certificates import Certificates
from specmux_aggregator.server.connections import Connections
from specmux_aggregator.server.dispatch import Dispatch
from specmux_aggregator.server.handshakes import ClientHandshakes
from specmux_aggregator.server.memo import Answers
from specmux_aggregator.server.output_limits import UNREAD_MAX
from specmux_aggregator.server.protocols import Guard, Responder, StreamingHandler
from specmux_aggregator.server.stats import RequestStats
from specmux_aggregator.server.tls_transport import TLSTransport
from specmux_aggregator.tasks import finish, log_failure

logger = logging.getLogger(__name__)

BACKLOG: Final = 1024
SWEEP_MAX: Final = 1.0  # seconds between looks at the connections, at most
CERTIFICATE_INTERVAL: Final = 1.0  # seconds between looks at the certificate's files


class HTTPServer:
    """Serves one address. Start once and stop once, on one event loop."""

    def __init__(
        self,
        service: Responder,
        listen: ListenSettings,
        *,
        slow_request: float = 1.0,
        use_memo: bool = True,
        guard: Guard | None = None,
        client_ca_file: Path | None = None,
        streaming: Sequence[StreamingHandler] = (),
        unread_max: int = UNREAD_MAX,
    ) -> None:
        """``slow_request``: seconds after which a request is logged. ``use_memo``: False for tests of what
        lies behind the memo. ``guard``: None admits everybody. ``streaming``: handlers that may claim a
        request before the service. ``client_ca_file``: the CA of client certificates, which the guard
        reads. ``unread_max``: bytes of large answers, over all connections, that clients have not read to
        the end."""
        self._listen = listen
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
        self._listener: asyncio.Server | None = None
        self._accept_errors: AcceptErrors | None = None
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
        made: Callable[[], asyncio.BaseProtocol] = self._connections.made
        if self._certificates is not None:
            self._handshakes = ClientHandshakes(
                self._connections.made, self._connections.admission, self._certificates, listen
            )
            made = partial(TLSTransport, self._handshakes)
        try:
            self._listener = await asyncio.get_running_loop().create_server(
                made, listen.address, listen.port, backlog=BACKLOG
            )
        except OSError as error:
            where = f"{listen.address}:{listen.port}"
            raise SpecmuxError(f"cannot listen on {where}: {_reason(error)}") from error
        for one in self._listener.sockets:
            # Accepted sockets inherit it: a client that vanished silently is noticed eventually.
            one.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        self._accept_errors = AcceptErrors(self.stats, self._connections.make_room)
        self._accept_errors.install(asyncio.get_running_loop())
        self._watch = asyncio.create_task(self._watch_over(self._connections))
        log_failure(self._watch, logger, "the deadlines of connections are no longer watched")
        host, port = self._listener.sockets[0].getsockname()[:2]
        return host, port

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
            None if self._listener is None else self._listener.close,
            None
            if self._accept_errors is None
            else partial(self._accept_errors.remove, asyncio.get_running_loop()),
            None if self._handshakes is None else self._handshakes.stop,
            None
            if self._connections is None
            else partial(self._connections.drain, self._listen.shutdown_timeout),
        )

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
