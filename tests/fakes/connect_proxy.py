"""An HTTP proxy for tests: CONNECT tunnels and plain requests, on loopback, with a password where wanted."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import ssl
from typing import Self
from urllib.parse import urlsplit

from fakes.listening import StreamServer
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
        self._scheme = "https" if tls else "http"
        self._server = StreamServer(self._serve, tls=tls)

    async def __aenter__(self) -> Self:
        self.url = f"{self._scheme}://127.0.0.1:{await self._server.start()}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await self._tunnel(reader, writer)

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
