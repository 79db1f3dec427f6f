"""Send a GET over a checked connection; aiohttp parses the head, the caller reads the body.

A ClientSession's work per request (URLs, cookies, redirects, traces, writers) takes longer than everything
else for a document, and is unnecessary for a single backend. Connections, TLS, limits, parser and timeouts
are those of the session that owns the connector.
"""

from __future__ import annotations

from typing import Protocol

import aiohttp
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import StreamReader
from multidict import CIMultiDictProxy

from specmux_aggregator.upstream.connections.response_reader import ResponseReader, reader_of
from specmux_converters.lazy.dataclasses import dataclass


class UnreadAnswer(Protocol):
    """An answer whose body is unread; aiohttp.ClientResponse is one."""

    @property
    def status(self) -> int: ...
    @property
    def method(self) -> str: ...
    @property
    def headers(self) -> CIMultiDictProxy[str]: ...
    @property
    def content(self) -> StreamReader: ...
    @property
    def connection(self) -> Connection | None: ...
    @property
    def content_length(self) -> int | None: ...


@dataclass(frozen=True, slots=True)
class DirectAnswer:
    """The answer. The caller closes it."""

    status: int
    headers: CIMultiDictProxy[str]
    content: StreamReader
    connection: Connection
    method: str = "GET"

    @property
    def content_length(self) -> int | None:
        """Length of a body that is delimited by it alone."""
        length = self.headers.get("Content-Length")
        return None if length is None else int(length)

    def close(self) -> None:
        """Return the connection, or close it if the body was not read to its end."""
        self.connection.release()


async def send_get(
    connector: aiohttp.BaseConnector,
    route: aiohttp.ClientRequest,
    head: bytes,
    *,
    timeout: aiohttp.ClientTimeout,
    ahead: int,
) -> DirectAnswer:
    """``route``: where and how to connect. A connection that breaks before the answer is assumed to have
    been closed while idle, and the request is repeated once. Raises aiohttp.ClientError, OSError and
    ValueError."""

    async def exchange() -> DirectAnswer:
        try:
            connection = await connector.connect(route, [], timeout)
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError("no connection in time") from error
        try:
            reader, transport = reader_of(connection), connection.transport
            if reader is None or transport is None or transport.is_closing():
                raise aiohttp.ClientConnectionResetError("it was lost as it was made")
            reader.set_response_params(
                read_until_eof=True, auto_decompress=False, read_timeout=timeout.sock_read, read_bufsize=ahead
            )
            reader.hold_back()
            transport.write(head)
            reader.start_timeout()
            message, content = await _final(reader, route)
        except BaseException:
            connection.close()
            raise
        content.on_eof(connection.release)
        return DirectAnswer(message.code, message.headers, content, connection)

    try:
        return await exchange()
    except (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorError):
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError):
        return await exchange()


async def _final(
    reader: ResponseReader, route: aiohttp.ClientRequest
) -> tuple[RawResponseMessage, StreamReader]:
    """The final answer, after interim ones (RFC 9110 15.2)."""
    try:
        while True:
            message, content = await reader.read()
            if not 100 <= message.code <= 199 or message.code == 101:
                return message, content
    except HttpProcessingError as error:
        raise aiohttp.ClientResponseError(
            route.request_info, (), status=error.code, message="not HTTP"
        ) from error
