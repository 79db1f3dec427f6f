"""The least that a proxy in Python does which fetches each document once: ask, hash, keep, pass on.

What it costs beside Go's reverse proxy is what the event loop, Python and OpenSSL leave to win. It knows no
limits, timeouts, faults and forms, and reads no more of HTTP than where a head and a body end. It has two
tasks, as whoever fetches once for all who wait, one of whom may leave::

    python bare_document_proxy.py PORT   # of the backend on loopback; prints its own
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import sys

LENGTH = re.compile(rb"(?i)\r\ncontent-length: *(\d+)")
INLINE_MAX = 100 * 1024
"""Bytes that are hashed in place, as in the service; more in a thread."""


class Backend(asyncio.Protocol):
    """The one connection that all is asked on."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.wire: asyncio.Transport = transport  # type: ignore[assignment]
        self.pieces: list[bytes] = []
        self.missing = 0

    async def fetched(self, target: bytes) -> bytes:
        self.answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.wire.write(
            b"GET %b HTTP/1.1\r\nHost: a\r\nAccept: application/json\r\nAccept-Encoding: identity\r\n\r\n"
            % target
        )
        return await self.answer

    def data_received(self, data: bytes) -> None:
        if not self.missing:
            end = data.index(b"\r\n\r\n")
            found = LENGTH.search(data, 0, end)
            assert found is not None
            self.missing = int(found[1])
            data = data[end + 4 :]
        self.pieces.append(data)
        self.missing -= len(data)
        if not self.missing:
            body, self.pieces = b"".join(self.pieces), []
            self.answer.set_result(body)


class Client(asyncio.Protocol):
    """One client; a task for each request."""

    backend: Backend
    kept: dict[bytes, bytes]
    flights: dict[bytes, asyncio.Task[bytes]]

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.wire: asyncio.Transport = transport  # type: ignore[assignment]

    def data_received(self, data: bytes) -> None:
        target = data.split(b" ", 2)[1]
        body = self.kept.get(target)
        if body is None:
            self.task = asyncio.get_running_loop().create_task(self.answer(target))
        else:
            self.write(body)

    def write(self, body: bytes) -> None:
        self.wire.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body))
        self.wire.write(body)

    async def answer(self, target: bytes) -> None:
        flight = self.flights.get(target)
        if flight is None:
            flight = self.flights[target] = asyncio.create_task(self.fetched(target))
        self.write(await asyncio.shield(flight))

    async def fetched(self, target: bytes) -> bytes:
        body = await self.backend.fetched(target)
        if len(body) <= INLINE_MAX:
            digest = hashlib.sha512(body).hexdigest()
        else:
            digest = (await asyncio.to_thread(hashlib.sha512, body)).hexdigest()
        assert target.endswith(digest.upper().encode())
        self.kept[target] = body
        del self.flights[target]
        return body


async def serve(port: int) -> None:
    loop = asyncio.get_running_loop()
    _, Client.backend = await loop.create_connection(Backend, "127.0.0.1", port)
    Client.kept, Client.flights = {}, {}
    server = await loop.create_server(Client, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
