"""A client for tests that writes bytes and reads answers as they come, in the test's event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from urllib.parse import urlsplit

from deadline import DEADLINE


@dataclass
class Answer:
    """The head of an answer."""

    status: int
    lines: list[str]

    def values(self, name: str) -> list[str]:
        pairs = [line.partition(":") for line in self.lines]
        return [value.strip() for key, _, value in pairs if key.lower() == name.lower()]

    def value(self, name: str) -> str | None:
        values = self.values(name)
        assert len(values) <= 1
        return values[0] if values else None


@dataclass
class WireClient:
    """One connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await asyncio.wait_for(self.writer.drain(), DEADLINE)

    async def ask(self, target: str, *fields: str, method: str = "GET", body: bytes = b"") -> None:
        lines = [f"{method} {target} HTTP/1.1", "Host: specmux", *fields]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        await self.send("\r\n".join([*lines, "", ""]).encode("latin-1") + body)

    async def head(self) -> Answer:
        """Raises IncompleteReadError when the connection ends first."""
        async with asyncio.timeout(DEADLINE):
            head = await self.reader.readuntil(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")[:-2]
        assert first.startswith("HTTP/1.1 ")
        return Answer(int(first.split(" ")[1]), lines)

    async def chunk(self) -> bytes:
        """One chunk; b"" for the last. Raises IncompleteReadError when the connection ends first."""
        async with asyncio.timeout(DEADLINE):
            line = await self.reader.readuntil(b"\r\n")
            size = int(line, 16)
            return (await self.reader.readexactly(size + 2))[:-2]

    async def body(self, answer: Answer) -> bytes:
        """Raises IncompleteReadError or ConnectionError where it breaks off."""
        if answer.status in (204, 304):
            return b""
        async with asyncio.timeout(DEADLINE):
            if answer.value("Transfer-Encoding") == "chunked":
                parts = []
                while part := await self.chunk():
                    parts.append(part)
                return b"".join(parts)
            length = answer.value("Content-Length")
            return await (self.reader.read() if length is None else self.reader.readexactly(int(length)))

    async def answer(self) -> tuple[Answer, bytes]:
        answer = await self.head()
        return answer, await self.body(answer)

    async def at_end(self) -> bool:
        """Whether the server closes with nothing more to say."""
        async with asyncio.timeout(DEADLINE):
            return await self.reader.read() == b""


@asynccontextmanager
async def connected(base: str) -> AsyncIterator[WireClient]:
    """A connection to the service at ``base``, an http URL."""
    parts = urlsplit(base)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=1 << 20)
    try:
        yield WireClient(reader, writer)
    finally:
        writer.close()
