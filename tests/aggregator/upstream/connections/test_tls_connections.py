"""Connections over TLS: kept between requests, and cut where the answer is given up."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import aiohttp
import pytest
import trustme

from deadline import DEADLINE
from specmux_aggregator.upstream.connections.connector import CheckedConnector

BODY = bytes(range(256)) * 1200
FOR_EVER = 1 << 50


@dataclass
class TLSServer:
    """Answers with ``BODY``, or without an end, and does not hear that its client wants no more. Blocking
    sockets in threads: event loops have opinions of their own about connections that end."""

    length: int = len(BODY)
    record: int = 16_000
    """Bytes of what it writes at once."""
    late: float = 0.0
    """Seconds that the second answer takes to begin. It has no end."""
    url: str = ""
    connections: int = 0
    requests: int = 0
    ended: threading.Event = field(default_factory=threading.Event)

    def accept(self, listening: socket.socket, context: ssl.SSLContext) -> None:
        with contextlib.suppress(OSError):
            while True:
                plain, _ = listening.accept()
                self.connections += 1
                with (
                    plain,
                    contextlib.suppress(OSError),
                    context.wrap_socket(plain, server_side=True) as wire,
                ):
                    wire.settimeout(DEADLINE)
                    self.serve(wire)
                self.ended.set()

    def serve(self, wire: ssl.SSLSocket) -> None:
        while wire.recv(65536):
            self.requests += 1
            if self.requests > 1 and self.late:
                time.sleep(self.late)
                self.length = FOR_EVER
            wire.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % self.length)
            for start in range(0, self.length, self.record):
                wire.sendall(BODY[start % len(BODY) :][: min(self.record, self.length - start)])

    def has_ended(self) -> bool:
        return self.ended.wait(DEADLINE)


@asynccontextmanager
async def serving(server: TLSServer) -> AsyncIterator[aiohttp.ClientSession]:
    ca = trustme.CA()
    context, trust = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    ca.issue_cert("127.0.0.1").configure_cert(context)
    ca.configure_trust(trust)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        server.url = f"https://127.0.0.1:{listening.getsockname()[1]}/"
        thread = threading.Thread(target=server.accept, args=(listening, context))
        thread.start()
        try:
            async with aiohttp.ClientSession(connector=CheckedConnector(ssl=trust)) as session:
                yield session
        finally:
            listening.shutdown(socket.SHUT_RDWR)
            await asyncio.to_thread(thread.join, 2 * DEADLINE)


@pytest.mark.parametrize("record", [1_200, 15_360, len(BODY)])
async def test_connection_is_kept_after_bodies_of_many_records(record: int) -> None:
    server = TLSServer(record=record)
    async with serving(server) as session:
        for _ in range(20):
            async with session.get(server.url) as response:
                assert await response.read() == BODY
    assert server.connections == 1


async def test_server_of_an_answer_that_is_given_up_can_send_no_more() -> None:
    server = TLSServer(length=FOR_EVER)
    async with serving(server) as session:
        async with session.get(server.url) as response:
            await response.content.read(1000)
        assert await asyncio.to_thread(server.has_ended)


async def test_server_that_answers_when_nobody_waits_any_more_can_send_no_more() -> None:
    server = TLSServer(late=0.5)
    async with serving(server) as session:
        async with session.get(server.url) as response:
            await response.read()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2):
                await session.get(server.url)
        assert await asyncio.to_thread(server.has_ended)
    assert (server.connections, server.requests) == (1, 2)
