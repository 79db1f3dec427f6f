"""Several apiservers behind one address: each connection, or each request, goes to the next."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from fakes.apiserver import FakeAPIServer
from fakes.listening import StreamServer


class Balancer:
    """Passes bytes on. ``servers``: who gets the next connection, in turn; may change while it runs."""

    def __init__(self, servers: Sequence[FakeAPIServer]) -> None:
        self.servers = list(servers)
        self.connections = 0
        self.url = ""
        self._writers: list[asyncio.StreamWriter] = []

    def cut(self) -> None:
        """End all connections."""
        while self._writers:
            self._writers.pop().close()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = self.servers[self.connections % len(self.servers)]
        self.connections += 1
        self._writers.append(writer)
        port = int(server.url.rpartition(":")[2])
        try:
            inner, outer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_pipe(reader, outer), _pipe(inner, writer))


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        with contextlib.suppress(OSError):
            while data := await reader.read(64 * 1024):
                writer.write(data)
                await writer.drain()
    finally:
        writer.close()


@asynccontextmanager
async def balanced(*servers: FakeAPIServer) -> AsyncIterator[Balancer]:
    """The servers, started, and a balancer of connections in front of them."""
    balancer = Balancer(servers)
    async with contextlib.AsyncExitStack() as stack:
        for server in servers:
            await server.start()
            stack.push_async_callback(server.stop)
        listener = StreamServer(balancer.serve)
        balancer.url = f"http://127.0.0.1:{await listener.start()}"
        stack.push_async_callback(listener.stop)
        yield balancer


class AlternatingServer(FakeAPIServer):
    """One address whose every request is answered by the next of several servers."""

    def __init__(self, worlds: Sequence[dict[str, bytes]]) -> None:
        super().__init__(worlds[0])
        self.worlds = worlds
        self.requests = 0

    def _note(self, request: object) -> None:
        super()._note(request)  # type: ignore[arg-type]
        self.requests += 1
        # Not in turn: a check that asks an even number of times would always meet the same one.
        self.documents = self.worlds[(self.requests * 7 // 3) % len(self.worlds)]
