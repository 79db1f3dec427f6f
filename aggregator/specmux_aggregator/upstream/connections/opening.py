"""Open connections to servers: socket, TLS, and proxy.

Invariant: a socket has one owner, which closes it once: this module until a transport has it, and the plain
transport from then on, whatever happens to TLS above it. A handshake that fails, is reset or times out aborts
that transport, and nothing else knows the descriptor. Closing a descriptor twice would close someone else's
file.
"""

from __future__ import annotations

import asyncio
import base64
import errno
import re
import socket
import ssl
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

import aiohttp
from aiohttp import hdrs
from aiohttp.http_exceptions import HttpProcessingError
from yarl import URL

from specmux_aggregator.upstream.connections.addresses import Address, Addresses
from specmux_aggregator.upstream.connections.response_reader import ResponseReader

STAGGER: Final = 0.25
"""Seconds after which the next address is tried concurrently (RFC 8305, section 5)."""

ANSWER_MAX: Final = 16 * 1024
"""Bytes of a proxy's answer that may be buffered."""

_TARGET: Final = re.compile(r"/[!-\"$-~]*")
"""No white space, control characters or fragment."""

_NAME: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_UNSENDABLE: Final = re.compile(r"[\r\n\0]")

NewReader = Callable[[], ResponseReader]
NewSocket = Callable[[socket.AddressFamily], socket.socket]


def stream_socket(family: socket.AddressFamily) -> socket.socket:
    return socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)


async def open_connection(
    request: aiohttp.ClientRequest,
    addresses: Addresses,
    *,
    new_reader: NewReader,
    new_socket: NewSocket,
    tls: ssl.SSLContext | None,
) -> ResponseReader:
    """A connection ready for ``request``. ``tls``: the context for encrypted ones. Raises the specific
    aiohttp.ClientConnectorError, aiohttp.ClientHttpProxyError and TimeoutError."""
    key = request.connection_key
    way = request.url if request.proxy is None else request.proxy
    try:
        untried = await addresses.of(_host(way), way.port or 0)
    except OSError as error:
        raise aiohttp.ClientConnectorDNSError(key, error) from error
    failure: aiohttp.ClientConnectorError | None = None
    while untried:
        try:
            wire, address = await _first_connected(untried, new_socket)
        except OSError as error:
            refused = (
                aiohttp.ClientConnectorError if request.proxy is None else aiohttp.ClientProxyConnectionError
            )
            raise failure or refused(key, error) from error
        try:
            if request.proxy is not None:
                return await _through_proxy(wire, request, request.proxy, new_reader, tls)
            return await _read(wire, new_reader, tls, request.server_hostname or _host(way))
        except ssl.CertificateError as error:
            failure = aiohttp.ClientConnectorCertificateError(key, error)
        except ssl.SSLError as error:
            failure = aiohttp.ClientConnectorSSLError(key, error)
        except aiohttp.ClientError:
            raise
        except OSError as error:
            if error.errno is None and isinstance(error, TimeoutError):
                raise
            failure = aiohttp.ClientConnectorError(key, error)
        untried.remove(address)  # another may succeed
    assert failure is not None
    raise failure


async def _read(
    wire: socket.socket, new_reader: NewReader, tls: ssl.SSLContext | None, name: str
) -> ResponseReader:
    """Attach a reader to ``wire``, whose ownership passes to this call."""
    loop = asyncio.get_running_loop()
    if tls is None:
        return (await loop.create_connection(new_reader, sock=wire))[1]
    plain, _ = await loop.create_connection(asyncio.Protocol, sock=wire)
    return await _encrypt(plain, new_reader(), tls, name)


async def _encrypt(
    plain: asyncio.Transport, reader: ResponseReader, tls: ssl.SSLContext, name: str
) -> ResponseReader:
    """Let ``reader`` read the encrypted data within ``plain``, which is closed on failure."""
    try:
        transport = await asyncio.get_running_loop().start_tls(
            plain, reader, tls, server_hostname=name.rstrip(".")
        )
        if transport is None:  # it ended without an error
            raise ConnectionResetError(errno.ECONNRESET, "the connection ended in the handshake")
    except BaseException:
        plain.abort()
        raise
    reader.connection_made(transport)
    return reader


async def _through_proxy(
    wire: socket.socket,
    request: aiohttp.ClientRequest,
    proxy: URL,
    new_reader: NewReader,
    tls: ssl.SSLContext | None,
) -> ResponseReader:
    proof = _proof(proxy)
    reader = await _read(wire, new_reader, tls if proxy.scheme == "https" else None, _host(proxy))
    if not request.is_ssl():
        request.headers.update(proof)
        return reader
    transport = reader.transport
    assert transport is not None
    assert tls is not None
    try:
        await _tunnel(reader, transport, request, proof)
        return await _encrypt(transport, new_reader(), tls, request.server_hostname or _host(request.url))
    except BaseException:
        transport.abort()
        raise


async def _tunnel(
    reader: ResponseReader,
    transport: asyncio.Transport,
    request: aiohttp.ClientRequest,
    proof: Mapping[str, str],
) -> None:
    """Open a tunnel through the proxy (RFC 9110, section 9.3.6)."""
    target = f"{request.url.host_subcomponent}:{request.url.port}"
    fields = {hdrs.HOST: target, **proof}
    reader.begin(has_body=False)
    reader.set_response_params(read_until_eof=True, auto_decompress=False, read_bufsize=ANSWER_MAX)
    transport.write(head_of(f"CONNECT {target} HTTP/1.1", fields.items()))
    try:
        while (message := (await reader.read())[0]).code < 200:
            pass
    except HttpProcessingError as error:
        raise aiohttp.ClientResponseError(
            request.request_info, (), status=error.code, message="not HTTP"
        ) from error
    if message.code != 200:
        raise aiohttp.ClientHttpProxyError(
            request.request_info, (), status=message.code, message=message.reason, headers=message.headers
        )


def _proof(proxy: URL) -> dict[str, str]:
    """The field that authenticates to a proxy."""
    if proxy.user is None and proxy.password is None:
        return {}
    pair = f"{proxy.user or ''}:{proxy.password or ''}".encode("latin-1")
    return {hdrs.PROXY_AUTHORIZATION: f"Basic {base64.b64encode(pair).decode()}"}


def _host(url: URL) -> str:
    host = url.raw_host
    assert host is not None  # aiohttp.ClientRequest refuses others
    return host


async def _first_connected(
    addresses: Sequence[Address], new_socket: NewSocket
) -> tuple[socket.socket, Address]:
    """A connected socket; the addresses are tried in order (RFC 8305). Raises OSError."""
    if len(addresses) == 1:
        return await _connect(addresses[0], new_socket), addresses[0]
    untried = list(addresses)
    trying: dict[asyncio.Task[socket.socket], Address] = {}
    failure: BaseException | None = None
    try:
        while untried or trying:
            if untried:
                address = untried.pop(0)
                trying[asyncio.create_task(_connect(address, new_socket))] = address
            ended, _ = await asyncio.wait(
                trying, timeout=STAGGER if untried else None, return_when=asyncio.FIRST_COMPLETED
            )
            for attempt in ended:
                failure = attempt.exception()
                if failure is None:
                    return attempt.result(), trying.pop(attempt)
                del trying[attempt]
        assert failure is not None
        raise failure
    finally:
        for attempt in trying:
            attempt.cancel()
        for made in await asyncio.gather(*trying, return_exceptions=True):
            if isinstance(made, socket.socket):
                made.close()


async def _connect(address: Address, new_socket: NewSocket) -> socket.socket:
    family, where = address
    wire = new_socket(family)
    try:
        wire.setblocking(False)
        await asyncio.get_running_loop().sock_connect(wire, where)
    except BaseException:
        wire.close()
        raise
    return wire


def is_sendable(target: str) -> bool:
    """Whether it is valid in a request line without encoding."""
    return _TARGET.fullmatch(target) is not None


def head_of(line: str, fields: Iterable[tuple[str, str]]) -> bytes:
    """A request without a body. ``line``: method, valid target and version. Raises ValueError for a field
    that contains a line break."""
    lines = [line]
    for name, value in fields:
        if _NAME.fullmatch(name) is None or _UNSENDABLE.search(value) is not None:
            raise ValueError("a header field has a character that cannot be sent")
        lines.append(f"{name}: {value}")
    lines.append("\r\n")
    return "\r\n".join(lines).encode()
