"""TLS between a client's socket and the protocol above it: a transport that encrypts at once, and holds
nothing.

asyncio's own TLS keeps buffers for each connection and a queue between them; here what comes is decrypted in
the turn in which it came, and what is written is encrypted and handed to the plain transport, whose flow
control is the only one.

One pair of buffers (``Records``) serves all connections of a listener. Invariant: both are empty whenever
anybody else's code runs; each method that fills one empties it again before it calls anything but OpenSSL.
Were that broken, connections would end: what was encrypted for one cannot be decrypted by another.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from typing import Any, Final, Protocol, cast

RECEIVE: Final = 16 * 1024
"""Bytes taken from a socket at once, and of one TLS record."""

PLAIN_HTTP: Final = frozenset({"HTTP_REQUEST", "HTTPS_PROXY_REQUEST"})
"""How OpenSSL says that the first bytes are no TLS, but HTTP (ssl/record/methods, ssl/sslerr.h)."""


class Records:
    """The way of bytes into OpenSSL and out of it. With buffers of its own each connection would keep as much
    memory as the largest of its writes took."""

    __slots__ = ("incoming", "outgoing")

    def __init__(self) -> None:
        self.incoming = ssl.MemoryBIO()
        self.outgoing = ssl.MemoryBIO()

    def clear(self) -> None:
        """Drop what OpenSSL did not want any more."""
        if self.incoming.pending:
            self.incoming.read()

    def drop(self) -> None:
        """Drop what OpenSSL has to send."""
        if self.outgoing.pending:
            self.outgoing.read()


class Handshakes(Protocol):
    """Who decides about connections whose handshake is not done."""

    records: Records

    def begin(self, transport: TLSTransport, peer: object) -> ssl.SSLContext | None:
        """What a new connection is encrypted with; None: it is refused."""

    def succeed(self, transport: TLSTransport, tls: ssl.SSLObject) -> asyncio.Protocol | None:
        """Who takes the connection over; None: nobody does."""

    def misdirected(self) -> bytes:
        """The answer to who speaks plain HTTP here, whole."""

    def end(self, transport: TLSTransport) -> None:
        """It is lost before its handshake was done."""


class TLSTransport(asyncio.Transport, asyncio.Protocol):
    """The plain transport's protocol, and the transport of the protocol above."""

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
        """Who takes what is decrypted; None until the handshake is done."""
        self._received: list[bytes] = []
        """What was decrypted while reading was paused: of one read of the socket at most."""
        self._is_paused = False
        self._is_closing = False
        self._is_over = False
        """The client has said that nothing more comes."""
        self._peer: dict[str, Any] | None = None

    # What the plain transport tells.

    def connection_made(self, transport: Any) -> None:
        self._wire = wire = transport
        wire.max_size = RECEIVE  # asyncio makes room for 256 KiB at each read
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
            # Let go of now, or OpenSSL's memory would be held until the collector finds it.
            app, self._app = self._app, None
            app.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self._is_closing or self._is_over:  # whatever comes means nothing any more
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

    # What the protocol above asks for.

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
        """Say that this is the end (RFC 8446, section 6.1), send what waits, and close. The client's own word
        for the end is not waited for."""
        if self._is_closing:
            return
        self._is_closing = True
        if self._app is not None:
            with contextlib.suppress(ssl.SSLError, ValueError):  # the client's word is wanting
                self._tls.unwrap()
            self._send()
        self._wire.close()

    def abort(self) -> None:
        self._is_closing = True
        self._wire.abort()

    # The records.

    def _receive(self, data: bytes, app: asyncio.Protocol) -> None:
        chunks = self._decrypted(data)
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
                records.drop()  # an alert that the client would take for the begin of an answer
                self._wire.write(handshakes.misdirected())
            self._fail()
            return
        # Session tickets, too, and at once: they carry the acknowledgement for which a client with Nagle's
        # algorithm holds its request back. Kept for the next write, they would cost it 40 ms.
        if records.outgoing.pending:
            self._wire.write(records.outgoing.read())
        if is_done:
            self._begin(tls)

    def _begin(self, tls: ssl.SSLObject) -> None:
        """Find who takes the connection over, its handshake being done."""
        handshakes, records = self._handshakes, self._handshakes.records
        # A request may have come with the end of the handshake; to ask OpenSSL in vain costs an exception.
        chunks = self._decrypted(b"") if records.incoming.pending else []
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

    def _decrypted(self, data: bytes) -> list[bytes] | None:
        """What these bytes, and those of a record before, make; None where they are no TLS."""
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
        """Say what OpenSSL has to say to what came, as to a wish for a renegotiation: left in the buffer
        it would go to another client. Who asks for such and does not read is cut."""
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
        """Tell the client why (RFC 8446, section 6.2), and close."""
        self._is_closing = True
        self._send()
        self._wire.close()

    def _send(self) -> None:
        """What OpenSSL has to send."""
        outgoing = self._handshakes.records.outgoing
        if outgoing.pending:
            self._wire.write(outgoing.read())
