"""A GET over a checked connection, its answer's head as aiohttp parses it, and its body for whoever takes it.

What a ClientSession makes of every request (URLs, cookies, redirects, traces, writers) takes longer than all
the rest of a document's way; none of it is needed towards one backend. Connections, TLS, limits, parser and
timeouts are those of the session that the connector belongs to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Protocol

import aiohttp
from aiohttp.client_proto import ResponseHandler
from aiohttp.connector import Connection
from aiohttp.http import RawResponseMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import StreamReader
from multidict import CIMultiDictProxy

from specmux_cache.http.whole_body import hold_back

_TARGET: Final = re.compile(r"/[!-\"$-~]*")
"""No space, no control character, no fragment."""

_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UNSENDABLE: Final = re.compile(r"[\r\n\0]")


class UnreadAnswer(Protocol):
    """An answer of which the body is unread: an aiohttp.ClientResponse is one."""

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
    """What came. Closed by whoever asked."""

    status: int
    headers: CIMultiDictProxy[str]
    content: StreamReader
    connection: Connection
    method: str = "GET"

    @property
    def content_length(self) -> int | None:
        """Of a body whose end is told so, and in no other way."""
        length = self.headers.get("Content-Length")
        return None if length is None else int(length)

    def close(self) -> None:
        """Give the connection back; it is closed where the body was not read to its end."""
        self.connection.release()


def is_sendable(target: str) -> bool:
    """Whether it can stand in a request line as it is."""
    return _TARGET.fullmatch(target) is not None


def head_of(target: str, fields: Iterable[tuple[str, str]]) -> bytes:
    """A GET as it is sent. ``target``: sendable. Raises ValueError for a field that would be two."""
    lines = [f"GET {target} HTTP/1.1"]
    for name, value in fields:
        if _NAME.fullmatch(name) is None or _UNSENDABLE.search(value) is not None:
            raise ValueError("a header field has a character that cannot be sent")
        lines.append(f"{name}: {value}")
    lines.append("\r\n")
    return "\r\n".join(lines).encode()


async def asked(
    connector: aiohttp.BaseConnector,
    route: aiohttp.ClientRequest,
    head: bytes,
    *,
    timeout: aiohttp.ClientTimeout,
    ahead: int,
) -> DirectAnswer:
    """``route`` says where to connect to, and how. A connection that breaks before it answered is taken for
    one that was closed as it was taken up: another is tried, once. Raises aiohttp.ClientError, OSError
    and ValueError."""
    try:
        return await _exchanged(connector, route, head, timeout, ahead)
    except (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorError):
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError):
        return await _exchanged(connector, route, head, timeout, ahead)


async def _exchanged(
    connector: aiohttp.BaseConnector,
    route: aiohttp.ClientRequest,
    head: bytes,
    timeout: aiohttp.ClientTimeout,
    ahead: int,
) -> DirectAnswer:
    try:
        connection = await connector.connect(route, [], timeout)
    except TimeoutError as error:
        raise aiohttp.ConnectionTimeoutError("no connection in time") from error
    try:
        protocol, transport = connection.protocol, connection.transport
        if protocol is None or transport is None or transport.is_closing():
            raise aiohttp.ClientConnectionResetError("it was lost as it was made")
        protocol.set_response_params(
            read_until_eof=True, auto_decompress=False, read_timeout=timeout.sock_read, read_bufsize=ahead
        )
        hold_back(connection)
        transport.write(head)
        protocol.start_timeout()
        message, content = await _final(protocol, route)
    except BaseException:
        connection.close()
        raise
    content.on_eof(connection.release)
    return DirectAnswer(message.code, message.headers, content, connection)


async def _final(
    protocol: ResponseHandler, route: aiohttp.ClientRequest
) -> tuple[RawResponseMessage, StreamReader]:
    """The answer behind those that only say that it will come (RFC 9110 15.2)."""
    try:
        while True:
            message, content = await protocol.read()
            if not 100 <= message.code <= 199 or message.code == 101:
                return message, content
    except HttpProcessingError as error:
        raise aiohttp.ClientResponseError(
            route.request_info, (), status=error.code, message="not HTTP"
        ) from error
