"""A TCP way to a server that can be frozen: bytes go nowhere, and nothing closes, as behind a dead tunnel."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Self

from fakes.listening import StreamServer


class FreezableWay:
    """On a port of loopback; open with ``async with``."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._open = asyncio.Event()
        self._open.set()
        self._server = StreamServer(self._serve)
        self.url = ""

    async def __aenter__(self) -> Self:
        self.url = f"http://127.0.0.1:{await self._server.start()}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop()

    def freeze(self) -> None:
        self._open.clear()

    def thaw(self) -> None:
        self._open.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self._port)
        try:
            await asyncio.gather(self._pump(reader, to_writer), self._pump(to_reader, writer))
        finally:
            for one in (writer, to_writer):
                one.close()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                await self._open.wait()
                writer.write(data)
                await writer.drain()
        with contextlib.suppress(OSError, RuntimeError):
            writer.write_eof()
