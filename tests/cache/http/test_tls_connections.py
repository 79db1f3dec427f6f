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
    """Answers with ``BODY``, or without an end, or too late."""

    length: int = len(BODY)
    late: float = 0.0
    """Seconds that each answer but the first takes to begin."""
    record: int = 16_000
    """Bytes of what it writes at once."""
    url: str = ""
    connections: int = 0
    requests: int = 0
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                self.requests += 1
                if self.requests > 1 and self.late:
                    writer.transport.pause_reading()  # type: ignore[attr-defined]
                    await asyncio.sleep(self.late)
                    self.length = FOR_EVER
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % self.length)
                if self.length == FOR_EVER:
                    writer.transport.pause_reading()  # type: ignore[attr-defined]  it hears no close_notify
                sent = 0
                while sent < self.length and not writer.is_closing():
                    writer.write(BODY[sent % len(BODY) :][: self.record])
                    sent = min(sent + self.record, self.length)
                    await writer.drain()
                    await asyncio.sleep(0)  # to be told of the end, which drain() does not wait for
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


def test_server_that_answers_when_nobody_waits_any_more_can_send_no_more() -> None:
    async def scenario() -> None:
        server = TLSServer(late=0.5)
        async with serving(server) as session:
            async with session.get(server.url) as response:
                await response.read()
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await session.get(server.url)
            assert server.requests == 2
            await asyncio.wait_for(server.ended.wait(), LIMIT)
        assert server.connections == 1

    asyncio.run(scenario())
