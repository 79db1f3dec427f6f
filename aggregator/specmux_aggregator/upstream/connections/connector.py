"""Keep connections between requests, and check that one may be used again.

Invariant: no byte received before a request was sent is read as its answer. HTTP/1.1 matches answers by order
alone (RFC 9112 9.2), so one stray piece (the body of a 304, more than Content-Length) shifts every later
answer on its connection. A connection is checked when it is returned; later input is noticed here, and in
``response_reader``.

Stray bytes between a request and its answer are indistinguishable from the answer, so callers who must not
receive each other's answers need separate connectors.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import select
import ssl as tls
from dataclasses import dataclass
from typing import Any, Final, cast

import aiohttp
from aiohttp.abc import AbstractResolver
from aiohttp.connector import Connection
from aiohttp.tracing import Trace

from specmux_aggregator.upstream.connections.addresses import Address, Addresses
from specmux_aggregator.upstream.connections.opening import NewSocket, open_connection, stream_socket
from specmux_aggregator.upstream.connections.response_reader import ResponseReader, reader_of

logger: Final = logging.getLogger(__name__)

ADDRESSES_KEPT: Final = 10.0
"""Seconds for which a host's addresses are cached."""

_CONDITIONS: Final = ("If-None-Match", "If-Modified-Since")


@dataclass(slots=True)
class ServerRecord:
    """State shared by the connectors to one server. Lives on one event loop."""

    openings: asyncio.Semaphore | None = None
    """Limits connections opened at a time; waiting for it does not count as connecting."""
    is_distrusted: bool = False
    """The server has sent more than its answers: none of its connections is reused."""

    def distrust(self) -> None:
        if not self.is_distrusted:
            self.is_distrusted = True
            logger.warning("a server sent more than its answers: none of its connections is used twice")


class CheckedConnector(aiohttp.BaseConnector):
    """Closes an idle connection that has received anything, or the end, since its last answer.

    A server that has sent more than its answers gets a new connection for every further request.
    """

    def __init__(
        self,
        *,
        keeps_after_no_body: bool = True,
        ssl: tls.SSLContext | None = None,
        resolver: AbstractResolver | None = None,
        addresses_kept: float = ADDRESSES_KEPT,
        address: Address | None = None,
        record: ServerRecord | None = None,
        new_socket: NewSocket = stream_socket,
        **options: Any,
    ) -> None:
        """``keeps_after_no_body``: keep connections also after requests whose answers have no body by rule
        (HEAD, 304), where servers most often send one nevertheless. ``ssl``: for requests without a context;
        None: one that trusts the system's CAs. ``address``: connect only to this server, whatever the URL's
        host, for which its certificate is still verified. ``record``: shared with other connectors to the
        server."""
        super().__init__(**options)
        self._default_tls = ssl
        self._addresses = Addresses(
            aiohttp.DefaultResolver() if resolver is None else resolver, kept=addresses_kept, only=address
        )
        self._new_socket = new_socket
        self._record = ServerRecord() if record is None else record
        self._keeps_after_no_body = keeps_after_no_body

    async def connect(
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> Connection:
        """Raises aiohttp.ClientConnectionError if the server sends something before the request."""
        while True:
            connection = await super().connect(req, traces, timeout)
            reader = reader_of(connection)
            if reader is None or reader.transport is None:  # lost immediately
                return connection
            was_kept = reader.is_resting
            is_usable = not was_kept or not (self._record.is_distrusted or _has_unread(reader.transport))
            if is_usable and not reader.should_close:
                break
            connection.close()
            if not was_kept:
                raise aiohttp.ClientConnectionError("it answered before it was asked")
        if self._record.is_distrusted or not (self._keeps_after_no_body or _has_body(req)):
            reader.force_close()
        reader.begin(has_body=req.method != "HEAD")
        connection.add_callback(reader.rest)
        return connection

    async def close(self, *, abort_ssl: bool = True) -> None:
        """Close every connection."""
        self._addresses.close()
        await super().close(abort_ssl=abort_ssl)

    async def _create_connection(  # type: ignore[override]  # of its kind for all that aiohttp does with it
        self, req: aiohttp.ClientRequest, traces: list[Trace], timeout: aiohttp.ClientTimeout
    ) -> ResponseReader:
        """The difference from aiohttp's connectors."""
        async with self._record.openings or contextlib.nullcontext(), asyncio.timeout(timeout.sock_connect):
            return await open_connection(
                req,
                self._addresses,
                new_reader=functools.partial(ResponseReader, self._record.distrust),
                new_socket=self._new_socket,
                tls=await self._tls_of(req),
            )

    async def _tls_of(self, req: aiohttp.ClientRequest) -> tls.SSLContext | None:
        if not req.is_ssl() and (req.proxy is None or req.proxy.scheme != "https"):
            return None
        asked = cast(object, req.ssl)
        if isinstance(asked, tls.SSLContext):
            return asked
        if self._default_tls is None:
            self._default_tls = await asyncio.to_thread(_system_trust)
        return self._default_tls


def _system_trust() -> tls.SSLContext:
    context = tls.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _has_unread(transport: asyncio.Transport) -> bool:
    """Whether input, or the end, is pending that the event loop has not reported yet."""
    if not transport.is_reading():
        return True
    wire = transport.get_extra_info("socket")
    if not hasattr(select, "poll"):  # Windows, where descriptors have no upper limit
        return bool(select.select([wire], [], [], 0)[0])
    poll = select.poll()
    poll.register(wire, select.POLLIN)
    return bool(poll.poll(0))


def _has_body(req: aiohttp.ClientRequest) -> bool:
    return req.method != "HEAD" and not any(name in req.headers for name in _CONDITIONS)
