"""TLS between a client's socket and the protocol above: a transport that encrypts at once and buffers
nothing.

asyncio's own TLS keeps buffers and a queue per connection. Here input is decrypted in the turn in which it
arrives, and output is encrypted and passed to the plain transport, whose flow control is the only one.

One pair of buffers (``Records``) serves all connections of a listener. Invariant: both are empty whenever
other code runs; a method that fills one empties it before it calls anything but OpenSSL. A violation would
end connections: data encrypted for one cannot be decrypted by another.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import Any, Final, Protocol, cast

RECEIVE: Final = 16 * 1024
"""Bytes read from a socket at once, and the size of a TLS record."""

PLAIN_HTTP: Final = frozenset({"HTTP_REQUEST", "HTTPS_PROXY_REQUEST"})
"""OpenSSL's reasons for input that is plain HTTP (ssl/record/methods, ssl/sslerr.h)."""


class Records:
    """The buffers into and out of OpenSSL. Buffers per connection would each keep as much memory as the
    largest write."""

    __slots__ = ("incoming", "outgoing")

    def __init__(self) -> None:
        self.incoming = ssl.MemoryBIO()
        self.outgoing = ssl.MemoryBIO()

    def clear(self) -> None:
        """Drop input that OpenSSL did not read."""
        if self.incoming.pending:
            self.incoming.read()

    def drop(self) -> None:
        """Drop output that OpenSSL has not sent."""
        if self.outgoing.pending:
            self.outgoing.read()


class Handshakes(Protocol):
    """Decides about connections during their handshake."""

    records: Records

    def begin(self, transport: TLSTransport, peer: object) -> ssl.SSLContext | None:
        """The context for a new connection; None refuses it."""

    def succeed(self, transport: TLSTransport, tls: ssl.SSLObject) -> asyncio.Protocol | None:
        """The protocol that takes the connection over; None if it is refused."""

    def answer_misdirected(self) -> bytes:
        """The complete answer to a client that speaks plain HTTP."""

    def end(self, transport: TLSTransport) -> None:
        """Note a connection that was lost during its handshake."""


class TLSTransport(asyncio.Transport, asyncio.Protocol):
    """The protocol of the plain transport, and the transport of the protocol above."""

    __slots__ = (
        "_app",
        "_handshakes",
        "_is_closing",
        "_is_over",
        "_is_paused",
        "_peer",
        "_received",
        "_tls",
        "_wire",
    )

    _tls: ssl.SSLObject
    _wire: asyncio.Transport

    def __init__(self, handshakes: Handshakes) -> None:
        self._handshakes = handshakes
        self._app: asyncio.Protocol | None = None
        """The protocol that receives decrypted data; None until the handshake is done."""
        self._received: list[bytes] = []
        """Data decrypted while reading was paused: at most one read of the socket."""
        self._is_paused = False
        self._is_closing = False
        self._is_over = False
        """Whether the client has announced the end of its data."""
        self._peer: dict[str, Any] | None = None

    # Callbacks of the plain transport.

    def connection_made(self, transport: Any) -> None:
        self._wire = wire = transport
        wire.max_size = RECEIVE  # asyncio would allocate 256 KiB for each read
        context = self._handshakes.begin(self, wire.get_extra_info("peername"))
        if context is None:
            self._is_closing = True
            wire.abort()
        else:
            records = self._handshakes.records
            self._tls = context.wrap_bio(records.incoming, records.outgoing, server_side=True)

    def connection_lost(self, exc: Exception | None) -> None:
        self._is_closing = True
        self._received.clear()
        if self._app is None:
            self._handshakes.end(self)
        else:
            # Release it now; otherwise OpenSSL's memory would be held until garbage collection.
            app, self._app = self._app, None
            app.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_closing or self._is_over:  # further input is meaningless
            return
        if self._app is None:
            self._shake(data)
        else:
            self._receive(data, self._app)

    def eof_received(self) -> bool | None:
        if self._app is None or self._is_closing:
            return None
        self._is_over = True
        return self._app.eof_received() if not self._received else True

    def pause_writing(self) -> None:
        if self._app is not None:
            self._app.pause_writing()

    def resume_writing(self) -> None:
        if self._app is not None:
            self._app.resume_writing()

    # Methods for the protocol above.

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        match name:
            case "ssl_object":
                return self._tls
            case "sslcontext":
                return self._tls.context
            case "peercert":
                if self._peer is None:
                    self._peer = self._tls.getpeercert() or {}
                return self._peer
            case _:
                return self._wire.get_extra_info(name, default)

    def get_protocol(self) -> asyncio.BaseProtocol:
        assert self._app is not None
        return self._app

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._app = cast("asyncio.Protocol", protocol)

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._is_closing or not data:
            return
        records, tls = self._handshakes.records, self._tls
        try:
            written = tls.write(data)
            while written < len(data):
                written += tls.write(memoryview(data)[written:])
        except ssl.SSLError:
            records.drop()
            self.abort()
            return
        self._wire.write(records.outgoing.read())

    def can_write_eof(self) -> bool:
        return False

    def write_eof(self) -> None:
        raise NotImplementedError("a client that is told of the end is not read from any more")

    def get_write_buffer_size(self) -> int:
        return self._wire.get_write_buffer_size()

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._wire.get_write_buffer_limits()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._wire.set_write_buffer_limits(high, low)

    def is_closing(self) -> bool:
        return self._is_closing or self._wire.is_closing()

    def is_reading(self) -> bool:
        return not self._is_paused and not self.is_closing()

    def pause_reading(self) -> None:
        if not self._is_paused and not self.is_closing():
            self._is_paused = True
            self._wire.pause_reading()

    def resume_reading(self) -> None:
        if self._is_paused and not self.is_closing():
            self._is_paused = False
            self._wire.resume_reading()
            if self._received or self._is_over:
                asyncio.get_running_loop().call_soon(self._deliver)

    def close(self) -> None:
        """Send close_notify (RFC 8446, section 6.1) and pending data, then close without waiting for the
        client's close_notify."""
        if self._is_closing:
            return
        self._is_closing = True
        if self._app is not None:
            with contextlib.suppress(ssl.SSLError, ValueError):  # the client sent no close_notify
                self._tls.unwrap()
            self._send()
        self._wire.close()

    def abort(self) -> None:
        self._is_closing = True
        self._wire.abort()

    # Records.

    def _receive(self, data: bytes, app: asyncio.Protocol) -> None:
        chunks = self._decrypt(data)
        if chunks is None:
            return
        if len(chunks) == 1 and not self._is_over and not self._is_paused and not self._received:
            app.data_received(chunks[0])
            return
        self._received.extend(chunks)
        if not self._is_paused:
            self._deliver()

    def _shake(self, data: bytes) -> None:
        handshakes, tls = self._handshakes, self._tls
        records = handshakes.records
        records.incoming.write(data)
        is_done = True
        try:
            tls.do_handshake()
        except ssl.SSLWantReadError:
            is_done = False
        except (ssl.SSLError, ssl.CertificateError) as error:
            records.clear()
            if error.reason in PLAIN_HTTP:
                records.drop()  # an alert, which the client would take for the begin of an answer
                self._wire.write(handshakes.answer_misdirected())
            self._fail()
            return
        # Session tickets are sent at once as well: they carry the TCP acknowledgement for which a client with
        # Nagle's algorithm holds its request back. Kept until the next write, they would cost it 40 ms.
        if records.outgoing.pending:
            self._wire.write(records.outgoing.read())
        if is_done:
            self._begin(tls)

    def _begin(self, tls: ssl.SSLObject) -> None:
        """Hand the connection over after its handshake."""
        handshakes, records = self._handshakes, self._handshakes.records
        # A request may have arrived with the end of the handshake; reading from OpenSSL in vain costs an
        # exception.
        chunks = self._decrypt(b"") if records.incoming.pending else []
        if chunks is None:
            return
        app = handshakes.succeed(self, tls)
        if app is None:
            self.abort()
            return
        self._app = app
        app.connection_made(self)
        if chunks or self._is_over:
            self._received.extend(chunks)
            self._deliver()

    def _decrypt(self, data: bytes) -> list[bytes] | None:
        """Decrypt these bytes together with an earlier partial record; None if they are not TLS."""
        records, tls = self._handshakes.records, self._tls
        incoming = records.incoming
        incoming.write(data)
        chunks = []
        try:
            while True:
                chunk = tls.read(RECEIVE)
                if not chunk:
                    self._is_over = True
                    records.clear()
                    break
                chunks.append(chunk)
                if not incoming.pending:  # a read takes a whole record, so OpenSSL holds nothing back
                    break
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLError:
            records.clear()
            self._fail()
            return None
        if records.outgoing.pending:
            self._contradict()
        return chunks

    def _contradict(self) -> None:
        """Send OpenSSL's response to unexpected input such as a renegotiation; left in the shared buffer it
        would reach another client. A client that provokes responses without reading them is cut."""
        if self._wire.get_write_buffer_size():
            self._handshakes.records.drop()
            self.abort()
        else:
            self._send()

    def _deliver(self) -> None:
        app = self._app
        if app is None:  # lost meanwhile
            return
        while self._received and not self._is_paused and not self._is_closing:
            app.data_received(self._received.pop(0))
        if self._is_over and not self._received and not self._is_closing and not app.eof_received():
            self.close()

    def _fail(self) -> None:
        """Send the alert (RFC 8446, section 6.2) and close."""
        self._is_closing = True
        self._send()
        self._wire.close()

    def _send(self) -> None:
        """Write OpenSSL's pending output."""
        outgoing = self._handshakes.records.outgoing
        if outgoing.pending:
            self._wire.write(outgoing.read())
