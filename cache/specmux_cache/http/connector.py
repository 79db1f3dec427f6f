"""Connections that are kept between requests, and the proof that one may be used again.

Invariant: no byte that came before a request was sent is read as its answer. HTTP/1.1 knows whose answer it
reads by order alone (RFC 9112 9.2), so one stray piece (the body of a 304, more than its Content-Length)
shifts every later answer on its connection by one. aiohttp looks at a connection when it is given back; what
comes after that is seen here.

What comes between a request and its answer cannot be told from the answer by anybody: who must not get each
other's answers needs connectors of their own.
"""

from __future__ import annotations

import asyncio
import logging
import select
from collections.abc import Callable
from typing import Any, Final

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

logger: Final = logging.getLogger(__name__)

_SAYS_GOODBYE: Final = (b"HTTP/1.1 408", b"HTTP/1.0 408")
"""What some servers say before they close an idle connection (net/http/transport.go of Go, is408Message)."""

_CONDITIONS: Final = ("If-None-Match", "If-Modified-Since")


class CheckedConnector(aiohttp.TCPConnector):
    """Closes a kept connection on which anything came, or that ended, since its last answer.

    Whoever was seen to send more than its answers gets a new connection for every request from then on.
    """

    def __init__(self, *, keeps_after_no_body: bool = True, **options: Any) -> None:
        """``keeps_after_no_body``: also after requests whose answer may have no body by rule (HEAD, 304),
        where servers most often send one nevertheless."""
        super().__init__(**options)
        self._keeps_after_no_body = keeps_after_no_body
        self._is_distrusted = False

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        """Raises aiohttp.ClientConnectionError where the server speaks before it was asked."""
        while True:
            connection = await super().connect(req, traces, timeout)
            protocol = connection.protocol
            assert protocol is not None, "aiohttp gives out connections that have one"
            was_kept = _resume(protocol)
            if not protocol.should_close and not (was_kept and _has_unread(protocol)):
                break
            connection.close()
            if not was_kept:
                raise aiohttp.ClientConnectionError("it answered before it was asked")
        if self._is_distrusted or not (self._keeps_after_no_body or _has_body(req)):
            protocol.force_close()
        connection.add_callback(lambda: _rest(protocol, self._distrust))
        return connection

    def _distrust(self) -> None:
        if not self._is_distrusted:
            self._is_distrusted = True
            logger.warning("a server sent more than its answers: none of its connections is used twice")


class _Resting(asyncio.Protocol):
    """Stands in for a connection's protocol between two requests: every byte is one too many."""

    def __init__(self, protocol: ResponseHandler, on_stray: Callable[[], None]) -> None:
        self.protocol = protocol
        self._on_stray = on_stray

    def data_received(self, data: bytes) -> None:
        self.protocol.close()
        if not data.startswith(_SAYS_GOODBYE):
            self._on_stray()

    def connection_lost(self, exc: Exception | None) -> None:
        self.protocol.connection_lost(exc)

    def eof_received(self) -> None:
        self.protocol.eof_received()

    def pause_writing(self) -> None:
        self.protocol.pause_writing()

    def resume_writing(self) -> None:
        self.protocol.resume_writing()


def _rest(protocol: ResponseHandler, on_stray: Callable[[], None]) -> None:
    """Called as the connection is given back, whether it is kept or not."""
    if protocol.transport is not None and not protocol.should_close:
        protocol.transport.set_protocol(_Resting(protocol, on_stray))


def _resume(protocol: ResponseHandler) -> bool:
    """Whether the connection was kept, that is, has answered before."""
    transport = protocol.transport
    if transport is None or not isinstance(transport.get_protocol(), _Resting):
        return False
    transport.set_protocol(protocol)
    return True


def _has_unread(protocol: ResponseHandler) -> bool:
    """Whether something came, or the end, that the event loop has not been told of yet."""
    transport = protocol.transport
    if transport is None or not transport.is_reading():
        return True
    wire = transport.get_extra_info("socket")
    if not hasattr(select, "poll"):  # Windows, where there is no limit to the number of a socket
        return bool(select.select([wire], [], [], 0)[0])
    poll = select.poll()
    poll.register(wire, select.POLLIN)
    return bool(poll.poll(0))


def _has_body(req: aiohttp.ClientRequest) -> bool:
    return req.method != "HEAD" and not any(name in req.headers for name in _CONDITIONS)
