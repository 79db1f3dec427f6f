"""Connections that are kept between requests, and the proof that one may be used again.

Invariant: no byte that came before a request was sent is read as its answer. HTTP/1.1 knows whose answer it
reads by order alone (RFC 9112 9.2), so one stray piece (the body of a 304, more than its Content-Length)
shifts every later answer on its connection by one. aiohttp looks at a connection when it is given back; what
comes after that is seen here, and in ``checked_protocol``.

What comes between a request and its answer cannot be told from the answer by anybody: who must not get each
other's answers needs connectors of their own.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import select
from typing import Any, Final

import aiohttp
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

from specmux_cache.http.checked_protocol import CheckedProtocol
from specmux_cache.http.timed_responses import TimedResponses

logger: Final = logging.getLogger(__name__)

_CONDITIONS: Final = ("If-None-Match", "If-Modified-Since")


class CheckedConnector(aiohttp.TCPConnector):
    """Closes a kept connection on which anything came, or that ended, since its last answer.

    Whoever was seen to send more than its answers gets a new connection for every request from then on.
    """

    def __init__(self, *, keeps_after_no_body: bool = True, **options: Any) -> None:
        """``keeps_after_no_body``: also after requests whose answer may have no body by rule (HEAD, 304),
        where servers most often send one nevertheless."""
        super().__init__(**options)
        self._factory = functools.partial(TimedResponses, loop=self._loop)  # type: ignore[assignment]  # a kind of it
        self._keeps_after_no_body = keeps_after_no_body
        self._is_distrusted = False

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        """Raises aiohttp.ClientConnectionError where the server speaks before it was asked."""
        while True:
            connection = await super().connect(req, traces, timeout)
            protocol, transport = connection.protocol, connection.transport
            if protocol is None or transport is None:  # it was lost as it was made
                return connection
            line = transport.get_protocol()
            was_kept = isinstance(line, CheckedProtocol)
            if not isinstance(line, CheckedProtocol):
                line = CheckedProtocol(transport, protocol, self._distrust)
                transport.set_protocol(line)
            if not protocol.should_close and not (was_kept and _has_unread(transport)):
                break
            connection.close()
            if not was_kept:
                raise aiohttp.ClientConnectionError("it answered before it was asked")
        if self._is_distrusted or not (self._keeps_after_no_body or _has_body(req)):
            protocol.force_close()
        line.begin(has_body=req.method != "HEAD")
        connection.add_callback(line.rest)
        return connection

    def _distrust(self) -> None:
        if not self._is_distrusted:
            self._is_distrusted = True
            logger.warning("a server sent more than its answers: none of its connections is used twice")


def _has_unread(transport: asyncio.Transport) -> bool:
    """Whether something came, or the end, that the event loop has not been told of yet."""
    if not transport.is_reading():
        return True
    wire = transport.get_extra_info("socket")
    if not hasattr(select, "poll"):  # Windows, where there is no limit to the number of a socket
        return bool(select.select([wire], [], [], 0)[0])
    poll = select.poll()
    poll.register(wire, select.POLLIN)
    return bool(poll.poll(0))


def _has_body(req: aiohttp.ClientRequest) -> bool:
    return req.method != "HEAD" and not any(name in req.headers for name in _CONDITIONS)
