"""Connections over TLS: kept between requests, and cut where the answer is given up."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
import pytest
import trustme

from specmux_cache.http.connector import CheckedConnector

BODY = bytes(range(256)) * 1200
FOR_EVER = 1 << 40
LIMIT = 10.0


@dataclass
class TLSServer:
    """Answers with ``BODY``, or without an end."""

    length: int = len(BODY)
    record: int = 16_000
    """Bytes of what it writes at once."""
    url: str = ""
    connections: int = 0
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % self.length)
                if self.length == FOR_EVER:
                    writer.transport.pause_reading()  # type: ignore[attr-defined]  it hears no close_notify
                sent = 0
                while sent < self.length and not writer.is_closing():
                    writer.write(BODY[sent % len(BODY) :][: self.record])
                    sent = min(sent + self.record, self.length)
                    await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.ended.set()
            writer.transport.abort()


@asynccontextmanager
async def serving(server: TLSServer) -> AsyncIterator[aiohttp.ClientSession]:
    ca = trustme.CA()
    context, trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    ca.issue_cert("127.0.0.1").configure_cert(context)
    ca.configure_trust(trust)
    listening = await asyncio.start_server(server.serve, "127.0.0.1", 0, ssl=context)
    server.url = f"https://127.0.0.1:{listening.sockets[0].getsockname()[1]}/"
    try:
        async with aiohttp.ClientSession(connector=CheckedConnector(ssl=trust)) as session:
            yield session
    finally:
        listening.close()
        await asyncio.wait_for(server.ended.wait(), LIMIT)


@pytest.mark.parametrize("record", [1_000, 16_000, len(BODY)])
def test_connection_is_kept_after_bodies_of_many_records(record: int) -> None:
    async def scenario() -> None:
        server = TLSServer(record=record)
        async with serving(server) as session:
            for _ in range(20):
                async with session.get(server.url) as response:
                    assert await response.read() == BODY
        assert server.connections == 1

    asyncio.run(scenario())


def test_server_of_an_answer_that_is_given_up_can_send_no_more() -> None:
    async def scenario() -> None:
        server = TLSServer(length=FOR_EVER)
        async with serving(server) as session:
            async with session.get(server.url) as response:
                await response.content.read(1000)
            # Well before the half minute in which uvloop waits for the server's last word.
            await asyncio.wait_for(server.ended.wait(), LIMIT)

    asyncio.run(scenario())
