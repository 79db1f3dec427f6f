"""TLS handshakes of clients: connections that cost memory before anybody has asked for anything.

asyncio tells a server's protocol of a connection once its handshake is done. Here one is known, counted and
refused from its first moment on, and becomes a ``Connection`` when it has proved what it can.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    from collections.abc import Callable

    from specmux_aggregator.certificates import Certificates
    from specmux_aggregator.connections import Connections
    from specmux_aggregator.settings import Listen


class Handshakes:
    """Makes the protocols of a TLS listener. Lives in one event loop."""

    def __init__(self, connections: Connections, certificates: Certificates, listen: Listen) -> None:
        self.connections = connections
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

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        plain = cast("asyncio.Transport", transport)
        if not self._handshakes.connections.admit(self, plain.get_extra_info("peername")):
            plain.abort()
            return
        task = asyncio.get_running_loop().create_task(self._shake(plain))
        self._handshakes.tasks.add(task)
        task.add_done_callback(self._handshakes.tasks.discard)

    async def _shake(self, plain: asyncio.Transport) -> None:
        shared = self._handshakes
        hall = _Hall()
        try:
            encrypted = await asyncio.get_running_loop().start_tls(
                plain,
                hall,
                shared.certificates.context,
                server_side=True,
                ssl_handshake_timeout=shared.listen.header_timeout,
                ssl_shutdown_timeout=shared.listen.write_timeout,
            )
        except (OSError, ssl.SSLError):  # TimeoutError is an OSError; there is nobody to tell
            plain.abort()
            return
        except asyncio.CancelledError:
            plain.abort()
            raise
        finally:
            # Whoever comes next takes the place in this same turn of the loop.
            shared.connections.release(self)
        if encrypted is None or hall.is_over:
            plain.abort()
        elif not shared.certificates.is_current(encrypted.get_extra_info("ssl_object")):
            # The CA that it proved itself to is not the clients' any more.
            encrypted.abort()
        else:
            hall.hand_over(encrypted, shared.connections)


class _Hall(asyncio.Protocol):
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

    def hand_over(self, encrypted: asyncio.Transport, make: Callable[[], Any]) -> None:
        connection: asyncio.Protocol = make()
        encrypted.set_protocol(connection)
        connection.connection_made(encrypted)
        for data in self._received:
            connection.data_received(data)
