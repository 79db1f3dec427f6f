"""A backend for tests that says its answers byte by byte: they stream, break off, or never begin."""

from __future__ import annotations

import asyncio
import contextlib
import re
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import orjson

from fakes.apiserver import document, hash_of
from fakes.listening import StreamServer
from fakes.sending import send

DISCOVERY = re.compile(r"/version|/api(/[^/]+)?|/apis(/[^/]+(/[^/]+)?)?")
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


@dataclass
class Seen:
    """One request as it came, and the connection that it came on."""

    method: str
    target: str
    fields: list[tuple[str, str]]
    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    body: bytes = b""
    is_cut: bool = False
    """The body broke off."""
    left: asyncio.Event = field(default_factory=asyncio.Event)
    """The connection was closed from the other side while the answer streamed."""

    def values(self, name: str) -> list[str]:
        return [value for key, value in self.fields if key.lower() == name.lower()]

    def names(self) -> set[str]:
        return {name.lower() for name, _ in self.fields}

    async def read_body(self) -> bytes:
        try:
            if self.values("Transfer-Encoding") == ["chunked"]:
                while size := int(await self.reader.readline(), 16):
                    self.body += await self.reader.readexactly(size)
                    await self.reader.readexactly(2)
                assert await self.reader.readline() == b"\r\n"
            elif lengths := self.values("Content-Length"):
                self.body = await self.reader.readexactly(int(lengths[0]))
        except (asyncio.IncompleteReadError, ValueError, ConnectionError):
            self.is_cut = True
        return self.body

    async def write(self, data: bytes) -> None:
        await send(self.writer, data)

    async def wait_until_left(self) -> None:
        with contextlib.suppress(ConnectionError):
            await self.reader.read()
        self.left.set()


Script = Callable[[Seen], Awaitable[None]]


async def answer_ok(seen: Seen) -> None:
    await seen.read_body()
    await seen.write(OK)


def saying(answer: bytes) -> Script:
    """A script that reads the body and says this; the connection stays open unless that asks to close."""

    async def script(seen: Seen) -> None:
        await seen.read_body()
        await seen.write(answer)
        if b"Connection: close" in answer:
            seen.writer.close()

    return script


@dataclass
class StreamingBackend:
    """Publishes ``group_versions``; everything else is ``script``'s to answer."""

    group_versions: tuple[str, ...] = ("apis/apps/v1",)
    script: Script = answer_ok
    requests: list[Seen] = field(default_factory=list)
    """All but those of discovery."""
    peer_certificates: list[tuple[str, Any]] = field(default_factory=list)
    """Target, and the client certificate that was shown with it."""
    url: str = ""
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self.tasks.add(task)
        try:
            while not writer.is_closing():
                head = await reader.readuntil(b"\r\n\r\n")
                line, *rest = head.decode("latin-1").split("\r\n")[:-2]
                method, target, _ = line.split(" ")
                fields = [(name, value.strip()) for name, _, value in (item.partition(":") for item in rest)]
                seen = Seen(method, target, fields, reader, writer)
                self.peer_certificates.append((target, writer.get_extra_info("peercert")))
                if target.startswith("/openapi/v3"):
                    await seen.write(self._discovery(target))
                elif DISCOVERY.fullmatch(target):
                    await seen.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                else:
                    self.requests.append(seen)
                    await self.script(seen)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the end of the connection
        finally:
            writer.close()
            self.tasks.discard(task)

    def _discovery(self, target: str) -> bytes:
        documents = {key: document(key) for key in self.group_versions}
        paths = {
            key: {"serverRelativeURL": f"/openapi/v3/{key}?hash={hash_of(body)}"}
            for key, body in documents.items()
        }
        body = orjson.dumps({"paths": paths})
        if target != "/openapi/v3":
            body = documents[target.removeprefix("/openapi/v3/").partition("?")[0]]
        return b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)


@asynccontextmanager
async def streaming(
    backend: StreamingBackend, tls: ssl.SSLContext | None = None
) -> AsyncIterator[StreamingBackend]:
    # From Python 3.12 on aiohttp's tasks start at once: a burst of requests is one of connections, and what
    # does not fit into the backlog waits a second for its next SYN.
    server = StreamServer(backend.serve, tls=tls, limit=1 << 20, backlog=1024)
    backend.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{await server.start()}"
    try:
        yield backend
    finally:
        await server.stop()
