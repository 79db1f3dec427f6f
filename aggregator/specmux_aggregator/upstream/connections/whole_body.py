"""Read a body of known length directly into its buffer, without the parser and with a single wake-up.

Invariant: no byte after the body is read; it stays in the socket, where it is noticed before the connection
is used again.
"""

from __future__ import annotations

import asyncio
import io

from aiohttp.connector import Connection
from aiohttp.streams import StreamReader

from specmux_aggregator.upstream.connections.response_reader import ResponseReader, reader_of


async def whole_body(connection: Connection | None, content: StreamReader, length: int) -> bytes:
    """The body of an answer. ``length``: its Content-Length, its only delimiter (RFC 9112 6.3). Raises as
    reading ``content`` does."""
    first = content.read_nowait()
    if content.at_eof():
        return first
    body = io.BytesIO(bytes(length))  # untouched zero pages take no memory
    # Views are released explicitly: a traceback may still hold one, and would keep the buffer exported.
    with body.getbuffer() as room, room[len(first) :] as rest:
        room[: len(first)] = first
        await _fill(rest, connection, content)
    return body.getvalue()  # returns the buffer itself; with an open view it would copy


async def _fill(room: memoryview, connection: Connection | None, content: StreamReader) -> None:
    reader = reader_of(connection)
    transport = None if reader is None else reader.transport
    if reader is not None and transport is not None and (missing := reader.count_held_back()):
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
    """Replaces the reader while the rest of a body is read into its buffer, and not a byte more."""

    def __init__(self, transport: asyncio.Transport, reader: ResponseReader, content: StreamReader) -> None:
        """``content`` receives the end, or the error that prevents it."""
        self._transport = transport
        self._reader = reader
        self._content = content
        self._room = memoryview(b"")

    def begin(self, room: memoryview) -> None:
        self._room = room
        self._transport.set_protocol(self)
        self._reader.go_on()

    def end(self) -> None:
        """Hand the connection back to the reader."""
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
