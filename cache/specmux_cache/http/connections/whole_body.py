"""A body of a told length, put into its place as it is read: no parser sees it, and one wake-up is all it
takes.

Invariant: of what the server sends behind the body not a byte is taken: it stays in the socket, where it is
seen before the connection is used again.
"""

from __future__ import annotations

import asyncio
import io

from aiohttp.connector import Connection
from aiohttp.streams import StreamReader

from specmux_cache.http.connections.response_reader import ResponseReader, reader_of


async def whole_body(connection: Connection | None, content: StreamReader, length: int) -> bytes:
    """The body of an answer. ``length``: its Content-Length, which alone tells where it ends (RFC 9112 6.3).
    Raises what reading ``content`` does."""
    first = content.read_nowait()
    if content.at_eof():
        return first
    body = io.BytesIO(bytes(length))  # zeroes nobody touches take no memory
    # Each view is released, whoever still holds one: a traceback does, and would keep the place exported.
    with body.getbuffer() as room, room[len(first) :] as rest:
        room[: len(first)] = first
        await _fill(rest, connection, content)
    return body.getvalue()  # what is given: with a view of it still open, it would be a copy


async def _fill(room: memoryview, connection: Connection | None, content: StreamReader) -> None:
    reader = reader_of(connection)
    transport = None if reader is None else reader.transport
    if reader is not None and transport is not None and (missing := reader.missing()):
        if missing == len(room):
            await _read(transport, reader, content, room)
            return
        reader.go_on()
    at = 0
    async for chunk in content.iter_any():
        room[at : at + len(chunk)] = chunk
        at += len(chunk)


async def _read(
    transport: asyncio.Transport, reader: ResponseReader, content: StreamReader, room: memoryview
) -> None:
    filling = Filling(transport, reader, content)
    filling.begin(room)
    try:
        await content.readany()
    finally:
        filling.end()


class Filling(asyncio.BufferedProtocol):
    """Stands in for a reader while the rest of a body is read into its place, no byte more."""

    def __init__(self, transport: asyncio.Transport, reader: ResponseReader, content: StreamReader) -> None:
        """``content`` is given the end, and what keeps it from coming."""
        self._transport = transport
        self._reader = reader
        self._content = content
        self._room = memoryview(b"")

    def begin(self, room: memoryview) -> None:
        self._room = room
        self._transport.set_protocol(self)
        self._reader.go_on()

    def end(self) -> None:
        """Whatever comes from here on is the reader's."""
        self._room = memoryview(b"")
        if self._transport.get_protocol() is self:
            self._transport.set_protocol(self._reader)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._room

    def buffer_updated(self, nbytes: int) -> None:
        self._room = self._room[nbytes:]
        if self._room:
            self._reader.start_timeout()
        else:
            self.end()
            self._content.feed_eof()

    def eof_received(self) -> None:
        self._reader.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._reader.connection_lost(exc)

    def pause_writing(self) -> None:
        self._reader.pause_writing()

    def resume_writing(self) -> None:
        self._reader.resume_writing()
