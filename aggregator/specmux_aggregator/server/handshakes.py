"""TLS handshakes of clients, which cost memory before anything is requested.

Each is counted and bounded in time from its first byte, and becomes a ``Connection`` once it succeeds.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable
from typing import Final

from specmux_aggregator.config.settings import ListenSettings
from specmux_aggregator.http.prepared_answer import TimeLines, refusal
from specmux_aggregator.server.admission import Admission
from specmux_aggregator.server.certificates import Certificates
from specmux_aggregator.server.outgoing import CLOSE
from specmux_aggregator.server.tls_transport import Records, TLSTransport

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

    def misdirected(self) -> bytes:
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
