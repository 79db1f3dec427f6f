"""Relay a backend's answer to the client: framed anew, streamed as it arrives, with an unchanged length.

If an answer breaks off, the client's connection is ended in a way that cannot be mistaken for the end of the
body.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import struct
from collections.abc import Callable
from email.utils import formatdate
from enum import Enum
from typing import Final

import aiohttp
from aiohttp import HttpVersion10, hdrs

from specmux_aggregator.model.failure import Failure
from specmux_aggregator.proxy.exchanges import Exchanges, ProxyExchange
from specmux_aggregator.proxy.header_fields import Field
from specmux_aggregator.proxy.swagger_copies import SwaggerBody
from specmux_aggregator.proxy.upload import Upload
from specmux_aggregator.server.outgoing import SLICE
from specmux_aggregator.server.protocols import ClientConnection, Guard, WireRequest, is_still_permitted
from specmux_aggregator.upstream.failures import TRANSPORT_ERRORS

PERMISSION_LOOK: Final = 15.0
"""Seconds between checks that the client of a running answer is still permitted; reviews are cached as
long."""

_RESET_ON_CLOSE: Final = struct.pack("ii", 1, 0)  # struct linger: at once


class Framing(Enum):
    """How the client recognizes the end of a body (RFC 9112 6.3)."""

    NONE = "none"
    LENGTH = "length"
    CHUNKED = "chunked"
    CLOSE = "close"


class ProxiedResponse:
    """Writes one answer that a backend has begun."""

    def __init__(
        self,
        begun: ProxyExchange,
        fields: list[Field],
        request: WireRequest,
        exchanges: Exchanges,
        *,
        upload: Upload | None,
        body: SwaggerBody | None,
        moved: Callable[[int], None],
        guard: Guard | None = None,
    ) -> None:
        """Owns ``begun``. ``body`` takes each piece and refuses too many; None: unlimited. ``guard`` is asked
        again while an answer without a length continues, such as a watch; None: everybody is permitted.
        ``moved`` receives the number of bytes of each piece, ``exchanges`` how the answer ended."""
        self._begun = begun
        self._answer = begun.answer
        self._request = request
        self._connection: ClientConnection = request.connection
        self._guard = guard
        self._exchanges = exchanges
        self._upload = upload
        self._body = body
        self._moved = moved
        self._framing = framing_of(self._answer, request)
        message = request.message
        # Once the answer has arrived, the rest of the client's request body is not awaited.
        is_early = not request.payload.is_eof()
        is_closing = message.should_close or message.upgrade or self._framing is Framing.CLOSE
        is_old = message.version == HttpVersion10
        # Clients of HTTP/1.0 cannot read chunks, and the connection must close afterwards (RFC 9112 6.1).
        self._is_last = is_early or is_closing or (is_old and message.chunked)
        self._head = self._write_head(fields, is_old=is_old)
        self._lost = _loss_of(self._answer) if self._framing is Framing.CLOSE else None

    @property
    def keep_alive(self) -> bool:
        return not self._is_last and not self._connection.is_drained

    async def write(self) -> None:
        """Write everything. Raises ConnectionError if either side is gone."""
        is_whole = False
        try:
            broken = await (self._pass_on() if self._has_end else self._pass_on_while_permitted())
            is_whole = broken is None
        except (ConnectionError, asyncio.CancelledError):
            self._connection.connections.stats.disconnects += 1
            raise
        finally:
            await self._begun.close()
            if self._upload is not None:
                await self._upload.wait_for_stop()
            if self._connection.streamed is not None:
                self._connection.end_streaming()
            if self._body is not None:
                await self._body.end(is_whole=is_whole)
        if broken is None:
            self._exchanges.note_end(self._begun.backend)
            return
        self._exchanges.note_break(self._begun.backend, broken)
        self._cut()
        raise ConnectionResetError("the backend's answer is not whole")

    @property
    def _has_end(self) -> bool:
        return self._guard is None or self._framing in (Framing.NONE, Framing.LENGTH)

    async def _pass_on_while_permitted(self) -> Exception | Failure | None:
        """Pass on like ``_pass_on``. Raises ConnectionResetError and cuts the connection once the client is
        no longer permitted: an apiserver checks a token only when a watch begins."""
        passing = asyncio.create_task(self._pass_on())
        try:
            while not (await asyncio.wait({passing}, timeout=PERMISSION_LOOK))[0]:
                if not await is_still_permitted(self._guard, self._request):
                    self._cut()
                    raise ConnectionResetError("the permission of the client has ended")
            return passing.result()
        finally:
            passing.cancel()
            await asyncio.gather(passing, return_exceptions=True)

    async def _pass_on(self) -> Exception | Failure | None:
        """Write head and body; returns why it broke off, or None."""
        content = self._answer.content
        unsent = self._head
        is_at_end = self._framing is Framing.NONE
        piece = b""
        while True:
            if not is_at_end:
                try:
                    # Send what has arrived together with the head, the rest as it arrives.
                    piece = content.read_nowait(SLICE) if unsent else await content.read(SLICE)
                    is_at_end = content.at_eof()
                except TRANSPORT_ERRORS as error:
                    return error
                if is_at_end and self._lost is not None and self._lost.done() and self._lost.exception():
                    return ConnectionResetError(errno.ECONNRESET, "the backend cut the connection")
            if self._body is not None and (too_many := self._body.take(piece)) is not None:
                return too_many
            data = unsent + self._frame(piece, is_last=is_at_end)
            if data:
                self._connection.send(data)
                self._moved(len(piece))
                await self._connection.drain()
            if is_at_end:
                return None
            unsent = piece = b""

    def _frame(self, piece: bytes, *, is_last: bool) -> bytes:
        if self._framing is not Framing.CHUNKED:
            return piece
        chunk = b"%x\r\n%b\r\n" % (len(piece), piece) if piece else b""
        return chunk + b"0\r\n\r\n" if is_last else chunk

    def _write_head(self, fields: list[Field], *, is_old: bool) -> bytes:
        answer = self._answer
        reason = answer.reason if answer.reason is not None and answer.reason.isprintable() else ""
        lines = [f"HTTP/1.1 {answer.status} {reason}", *(f"{name}: {value}" for name, value in fields)]
        if not any(name.lower() == "date" for name, _ in fields):
            lines.append(f"Date: {formatdate(usegmt=True)}")
        if self._framing is Framing.CHUNKED:
            lines.append("Transfer-Encoding: chunked")
        elif hdrs.TRANSFER_ENCODING not in answer.headers and answer.status not in (204, 304):
            length = answer.headers.get(hdrs.CONTENT_LENGTH)
            if length is not None:
                lines.append(f"Content-Length: {length}")
        if self._is_last:
            lines.append("Connection: close")
        elif is_old:
            lines.append("Connection: keep-alive")
        return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")

    def _cut(self) -> None:
        """End the connection so that what was sent cannot be taken for the whole answer."""
        transport = self._connection.transport
        if self._framing is Framing.CLOSE and transport is not None:
            # An orderly close would mark the end of such a body.
            wire = transport.get_extra_info("socket")
            wire.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self._connection.cut_off()


def _loss_of(answer: aiohttp.ClientResponse) -> asyncio.Future[None] | None:
    """Resolved with the end of the backend's connection, as a failure if it was not orderly. aiohttp does not
    report that for a body that ends with its connection."""
    protocol = None if answer.connection is None else answer.connection.protocol
    lost = None if protocol is None else protocol.closed
    if lost is not None:
        # marks the exception as retrieved
        lost.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    return lost


def framing_of(answer: aiohttp.ClientResponse, request: WireRequest) -> Framing:
    """How the end of this answer's body is shown to the client."""
    if request.message.method == "HEAD" or answer.status in (204, 304):
        return Framing.NONE
    if hdrs.TRANSFER_ENCODING in answer.headers:
        return Framing.CLOSE if request.message.version == HttpVersion10 else Framing.CHUNKED
    # Without either, the end of the backend's connection is the end of the body.
    return Framing.LENGTH if hdrs.CONTENT_LENGTH in answer.headers else Framing.CLOSE
