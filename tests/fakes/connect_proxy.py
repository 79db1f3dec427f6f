"""An HTTP proxy for tests: CONNECT tunnels and plain requests, on loopback, with a password where wanted."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ssl
from typing import Self
from urllib.parse import urlsplit

from fakes.sending import send


class ConnectProxy:
    """``seen``: the request lines that came. Everything goes to ``target`` (host, port) if that is given."""

    def __init__(
        self,
        *,
        password: str | None = None,
        target: tuple[str, int] | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self.seen: list[str] = []
        self.url = ""
        self._wanted = None if password is None else base64.b64encode(password.encode()).decode()
        self._target = target
        self._tls = tls
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls)
        port = self._server.sockets[0].getsockname()[1]
        self.url = f"{'https' if self._tls else 'http'}://127.0.0.1:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            try:
                await self._tunnel(reader, writer)
            finally:
                writer.close()

    async def _tunnel(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        line, *fields = head.decode("latin-1").split("\r\n")
        self.seen.append(line)
        if self._wanted is not None and f"Proxy-Authorization: Basic {self._wanted}" not in fields:
            await send(writer, b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            return
        method, where, _ = line.split(" ")
        parts = urlsplit(f"//{where}" if method == "CONNECT" else where)
        host, port = self._target or (parts.hostname, parts.port)
        onward_reader, onward = await asyncio.open_connection(host, port)
        try:
            if method == "CONNECT":
                await send(writer, b"HTTP/1.1 200 Connection established\r\n\r\n")
            else:
                path = parts.path + (f"?{parts.query}" if parts.query else "")
                onward.write(head.replace(where.encode(), path.encode(), 1))
            both = [
                asyncio.ensure_future(_copy(*pair)) for pair in ((reader, onward), (onward_reader, writer))
            ]
            try:
                await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for copying in both:
                    copying.cancel()
                await asyncio.gather(*both, return_exceptions=True)
        finally:
            onward.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(65536):
        await send(writer, chunk)
