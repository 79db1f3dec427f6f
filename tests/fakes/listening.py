"""Ports of fake servers whose end is the end of every connection that came to them.

asyncio and aiohttp leave a connection open that is made while its server closes, or whose handler is
cancelled before its first step. Nobody closes it once its event loop has stopped, and pytest blames the
test that runs when it is collected.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable
from typing import Any, Final
from weakref import WeakSet

from aiohttp import web

from deadline import DEADLINE

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Coroutine[Any, Any, None]]

TURNS_OF_ACCEPTING: Final = 3
"""Turns of the event loop until asyncio has made connections of all that it accepted."""

LAST_WORDS: Final = 1.0
"""Seconds in which clients may read what is written, once their server is closed."""


class Listener:
    """A port of loopback. ``make_protocol``: for each connection."""

    def __init__(
        self,
        make_protocol: Callable[[], asyncio.BaseProtocol],
        *,
        host: str = "127.0.0.1",
        tls: ssl.SSLContext | None = None,
        backlog: int = 100,
    ) -> None:
        self._make_protocol = make_protocol
        self._host = host
        self._options: dict[str, Any] = {"ssl": tls, "backlog": backlog, "start_serving": False}
        self._server: asyncio.Server | None = None
        self._ended: asyncio.Task[None] | None = None
        self._accepting: set[asyncio.Task[Any]] = set()
        """asyncio's, each until its connection is made."""

    async def open(self, port: int = 0) -> int:
        """Accept connections; returns the port. Whoever cancels it leaves no socket."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(self._accept, self._host, port, **self._options)
        bound: int = server.sockets[0].getsockname()[1]
        try:
            await server.start_serving()
        except BaseException:  # asyncio keeps the socket then
            server.close()
            raise
        self._server = server
        # Asked only after the close, Python 3.11 does not wait.
        self._ended = asyncio.create_task(server.wait_closed())
        return bound

    async def close(self) -> None:
        """Accept no more. What was accepted is a connection now, or has ended within its TLS handshake."""
        if self._server is None:
            return
        server, self._server = self._server, None
        loop = asyncio.get_running_loop()
        for each in server.sockets:
            loop.remove_reader(each)
        try:
            for _ in range(TURNS_OF_ACCEPTING):
                await asyncio.sleep(0)
        finally:
            server.close()
        await _cancel(self._accepting)

    async def end(self, wires: Collection[asyncio.BaseTransport | None]) -> None:
        """Wait until every connection is lost; cut ``wires``, those whose clients do not read the rest."""
        if self._ended is None:
            return
        done, _ = await asyncio.wait([self._ended], timeout=LAST_WORDS)
        if not done:
            for wire in wires:
                if isinstance(wire, asyncio.WriteTransport):
                    wire.abort()
            await asyncio.wait_for(self._ended, DEADLINE)

    def _accept(self) -> asyncio.BaseProtocol:
        task = asyncio.current_task()
        assert task is not None
        self._accepting.add(task)
        task.add_done_callback(self._accepting.discard)
        return self._make_protocol()


class StreamServer:
    """Runs ``serve`` for each connection, which ends with it."""

    def __init__(self, serve: Serve, *, limit: int = 1 << 16, **listener: Any) -> None:
        """``limit``: of the stream reader. ``listener``: options of ``Listener``."""
        self._serve = serve
        self._limit = limit
        self._listener = Listener(self._make_protocol, **listener)
        self._open: dict[asyncio.Task[None], asyncio.StreamWriter] = {}
        self._wires: WeakSet[asyncio.WriteTransport] = WeakSet()
        """Of connections that are not lost yet, and perhaps some that are."""

    async def start(self, port: int = 0) -> int:
        """Accept connections; returns the port."""
        return await self._listener.open(port)

    async def stop(self) -> None:
        """Close the port and every connection, cancelled too; it can be started again."""
        try:
            await self._listener.close()
        finally:
            await self.cut()
            await self._listener.end(self._wires)

    async def cut(self) -> None:
        """Close every connection."""
        await _cancel(self._open)

    def _make_protocol(self) -> asyncio.BaseProtocol:
        return asyncio.StreamReaderProtocol(asyncio.StreamReader(limit=self._limit), self._begin)

    def _begin(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._run(reader, writer))
        self._open[task] = writer
        self._wires.add(writer.transport)
        task.add_done_callback(self._end)

    async def _run(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await self._serve(reader, writer)
        finally:
            writer.close()

    def _end(self, task: asyncio.Task[None]) -> None:
        writer = self._open.pop(task)
        if not writer.is_closing():  # it was cancelled before its first step
            writer.close()


class WebServer:
    """Runs an application of aiohttp."""

    def __init__(
        self, application: web.Application, *, shutdown_timeout: float = 60.0, **listener: Any
    ) -> None:
        """``shutdown_timeout``: seconds for handlers that run when it stops. ``listener``: options of
        ``Listener``."""
        application.middlewares.insert(0, self._note)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=shutdown_timeout)
        self._options = listener
        self._listener: Listener | None = None
        self._handling: set[asyncio.Task[Any]] = set()
        """aiohttp forgets those whose client has gone."""

    async def start(self, port: int = 0) -> int:
        """Accept connections; returns the port."""
        await self._runner.setup()
        assert self._runner.server is not None
        self._listener = Listener(self._runner.server, **self._options)
        return await self._listener.open(port)

    async def stop(self) -> None:
        """Close the port and every connection, cancelled too."""
        if self._listener is None:
            return
        listener, self._listener = self._listener, None
        try:
            await listener.close()
        finally:
            assert self._runner.server is not None
            wires = [each.transport for each in self._runner.server.connections]
            await self._runner.cleanup()
            await _cancel(self._handling)
            await listener.end(wires)

    @web.middleware
    async def _note(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        task = asyncio.current_task()
        assert task is not None
        self._handling.add(task)
        task.add_done_callback(self._handling.discard)
        return await handler(request)


async def _cancel(tasks: Iterable[asyncio.Task[Any]]) -> None:
    left = tuple(tasks)
    for task in left:
        task.cancel()
    await asyncio.gather(*left, return_exceptions=True)
