"""TLS handshakes of clients: connections that cost memory before anybody has asked for anything.

asyncio tells a server's protocol of a connection once its handshake is done. Here one is known, counted and
refused from its first moment on, and becomes a ``Connection`` when it has proved what it can.
"""

from __future__ import annotations

import asyncio
import ssl
from asyncio import sslproto
from collections.abc import Callable
from typing import Any, Final, cast

from specmux_aggregator.config.settings import Listen
from specmux_aggregator.server.admission import Admission
from specmux_aggregator.server.certificates import Certificates

RECEIVE: Final = 16 * 1024
"""Bytes taken from a socket at once: one TLS record."""


class Handshakes:
    """Makes the protocols of a TLS listener. Lives in one event loop."""

    def __init__(
        self,
        make_connection: Callable[[], asyncio.Protocol],
        admission: Admission,
        certificates: Certificates,
        listen: Listen,
    ) -> None:
        """``make_connection``: of a client whose handshake is done."""
        self.make_connection = make_connection
        self.admission = admission
        self.certificates = certificates
        self.listen = listen
        self.tasks: set[asyncio.Task[None]] = set()

    def __call__(self) -> asyncio.Protocol:
        return Handshake(self)

    async def stop(self) -> None:
        """Cut every handshake that is not done."""
        for task in self.tasks:
            task.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)


class Handshake(asyncio.Protocol):
    """One connection until its handshake is done."""

    def __init__(self, handshakes: Handshakes) -> None:
        self._handshakes = handshakes
        self._early = bytearray()
        """What uvloop has read before the handshake began: the client's first words, mostly."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        plain = cast("asyncio.Transport", transport)
        if not self._handshakes.admission.admit(self, plain.get_extra_info("peername")):
            plain.abort()
            return
        task = asyncio.get_running_loop().create_task(self._shake(plain))
        self._handshakes.tasks.add(task)
        task.add_done_callback(self._handshakes.tasks.discard)

    def data_received(self, data: bytes) -> None:
        self._early += data

    async def _shake(self, plain: asyncio.Transport) -> None:
        shared = self._handshakes
        first_bytes = _FirstBytes()
        try:
            encrypted = await _start_tls(
                plain, first_bytes, shared.certificates.context, shared.listen, early=self._early
            )
        except (OSError, ssl.SSLError):  # TimeoutError is an OSError; there is nobody to tell
            plain.abort()
            return
        except asyncio.CancelledError:
            plain.abort()
            raise
        finally:
            # Whoever comes next takes the place in this same turn of the loop.
            shared.admission.release(self)
        if encrypted is None or first_bytes.is_over:
            plain.abort()
        elif not shared.certificates.is_current(encrypted.get_extra_info("ssl_object")):
            # The CA that it proved itself to is not the clients' any more.
            encrypted.abort()
        else:
            first_bytes.hand_over(encrypted, shared.make_connection)


class _Records(sslproto.SSLProtocol):
    """asyncio's TLS, which else takes 256 KiB for each connection before the first byte has come: 2,000
    handshakes that do not end would hold 600 MiB instead of 140."""

    max_size = RECEIVE


async def _start_tls(
    plain: asyncio.Transport,
    first_bytes: _FirstBytes,
    context: ssl.SSLContext,
    listen: Listen,
    *,
    early: bytearray,
) -> asyncio.Transport | None:
    """The server's side of a handshake. None where the client left with its end; raises OSError."""
    loop = asyncio.get_running_loop()
    if not isinstance(loop, asyncio.BaseEventLoop):
        # uvloop has a TLS of its own, with larger buffers (docs/sizing.md).
        handshake = loop.create_task(
            loop.start_tls(
                plain,
                first_bytes,
                context,
                server_side=True,
                ssl_handshake_timeout=listen.header_timeout,
                ssl_shutdown_timeout=listen.write_timeout,
            )
        )
        try:
            await asyncio.sleep(0)  # reading is paused then, and the protocol is that of TLS
            _feed(cast("asyncio.BufferedProtocol", plain.get_protocol()), early)
            return await handshake
        finally:
            handshake.cancel()
    # What the loop's start_tls does, with a protocol of ours.
    done: asyncio.Future[None] = loop.create_future()
    make: Any = _Records  # typeshed takes whole seconds only
    records = make(
        loop,
        first_bytes,
        context,
        done,
        server_side=True,
        call_connection_made=False,
        ssl_handshake_timeout=listen.header_timeout,
        ssl_shutdown_timeout=listen.write_timeout,
    )
    plain.pause_reading()
    plain.set_protocol(records)
    records.connection_made(plain)
    plain.resume_reading()
    await done
    encrypted: asyncio.Transport | None = records._app_transport  # noqa: SLF001
    return encrypted


def _feed(tls: asyncio.BufferedProtocol, data: bytearray) -> None:
    while data:
        room = memoryview(tls.get_buffer(len(data)))
        taken = min(len(room), len(data))
        room[:taken] = data[:taken]
        tls.buffer_updated(taken)
        del data[:taken]


class _FirstBytes(asyncio.Protocol):
    """Where the first bytes wait, which may come with the end of the handshake."""

    def __init__(self) -> None:
        self.is_over = False
        self._received: list[bytes] = []

    def data_received(self, data: bytes) -> None:
        self._received.append(data)

    def eof_received(self) -> None:
        self.is_over = True

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_over = True

    def hand_over(self, encrypted: asyncio.Transport, make: Callable[[], asyncio.Protocol]) -> None:
        connection = make()
        encrypted.set_protocol(connection)
        connection.connection_made(encrypted)
        for data in self._received:
            connection.data_received(data)
