"""One GET over HTTP, whole or not at all, for a program without an event loop: what ``transport`` does on the
standard library's HTTP, which takes a tenth of aiohttp's time to import.

Invariants: ``http.client``'s exceptions do not leave this module; no answer is read past its limit, packed or
unpacked; a connection is used again only if every byte that came on it belonged to an answer.

Without proxies. The time that the system takes to look up a host name counts, but is not cut short.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final
from urllib.parse import quote

from specmux_cache.errors import BadAnswer, ServerUnreachable
from specmux_cache.http.connection_faults import reason_of
from specmux_cache.http.connections.wire import Wire
from specmux_cache.http.header_fields import Fields, fields_of, joined
from specmux_cache.http.responses import Answer
from specmux_cache.http.server import Server
from specmux_cache.http.unpacking import ACCEPT_ENCODING, is_packed, unpacked

CHUNK: Final = 64 * 1024
SENT_AS_IT_IS: Final = "/:@!$&'()*+,;=-._~%?"
USUAL_PORTS: Final = {"http": 80, "https": 443}
INTERIM_MAX: Final = 16
"""Interim answers (1xx) before the answer; servers send one."""


class BlockingTransport:
    """Connections to one server; calls from several threads have one each. Raises ServerUnreachable and
    BadAnswer; any status is an answer."""

    def __init__(
        self,
        server: Server,
        *,
        headers: Mapping[str, str] = MappingProxyType({}),
        tls: ssl.SSLContext | None = None,
        server_name: str | None = None,
        connect_timeout: float,
        timeout: float,
        max_body_bytes: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Times are seconds; ``timeout`` is for a whole answer."""
        self._server = server
        self._headers = {
            "accept": "*/*",
            "user-agent": "specmux-cache",
            **{name.lower(): value for name, value in headers.items()},
        }
        self._tls = tls
        self._server_name = server_name
        self._connect_timeout = connect_timeout
        self._timeout = timeout
        self._max_body_bytes = max_body_bytes
        self._clock = clock
        self._kept: list[Wire] = []
        self._is_distrusted = False
        """The server was seen to send more than its answers: none of its connections is used twice."""

    def close(self) -> None:
        while self._kept:
            self._kept.pop().close()

    async def get(self, url: str, fields: Fields) -> Answer:
        """Follows no redirect. The body is unpacked, and the fields that described its packing are gone.

        ``url`` is one of the server's. It waits for no event loop.
        """
        requested_at = self._clock()
        try:
            status, received, body = self._asked(url, {**self._headers, **dict(fields)})
        except TimeoutError as error:
            raise ServerUnreachable("no whole answer in time", url=url) from error
        except http.client.RemoteDisconnected as error:
            raise ServerUnreachable("it closed the connection before it answered", url=url) from error
        except http.client.HTTPException as error:
            raise BadAnswer("the response was cut off or is not HTTP", url=url) from error
        except OverflowError as error:
            raise BadAnswer("the body is larger than max_body_bytes", url=url) from error
        except (OSError, ValueError) as error:
            raise ServerUnreachable(reason_of(error), url=url) from error
        answer = Answer(status, received, body, requested_at, self._clock())
        return unpacked(answer, self._max_body_bytes, url) if is_packed(answer) else answer

    def _asked(self, url: str, headers: Mapping[str, str]) -> tuple[int, Fields, bytes]:
        deadline = time.monotonic() + self._timeout
        host, port = self._host_and_port()
        is_usual = port == USUAL_PORTS[self._server.scheme]
        headers = {"host": host if is_usual else f"{host}:{port}", **headers}
        target = quote(
            url.removeprefix(f"{self._server.scheme}://{self._server.authority}"), safe=SENT_AS_IT_IS
        )
        wire = self._kept_wire()
        if wire is not None:
            try:
                return self._exchanged(wire, deadline, target, headers)
            except ConnectionError:
                pass  # it was closed as we asked
        return self._exchanged(self._connected(host, port, deadline), deadline, target, headers)

    def _exchanged(
        self, wire: Wire, deadline: float, target: str, headers: Mapping[str, str]
    ) -> tuple[int, Fields, bytes]:
        """Raises ConnectionError where no answer came at all."""
        wire.begin(deadline)
        try:
            # Who refuses a certificate, with TLS 1.3, says so and ends while the request is written.
            with contextlib.suppress(ssl.SSLEOFError, BrokenPipeError):
                _send(wire, target, headers)
            response = _answered(wire)
            received = _fields(response)
            body = self._body(response)
        except BaseException:
            wire.close()
            raise
        if not response.will_close and wire.is_quiet():
            self._kept.append(wire)
        else:
            self._is_distrusted = self._is_distrusted or not response.will_close
            wire.close()
        return response.status, received, body

    def _kept_wire(self) -> Wire | None:
        while self._kept:
            wire = self._kept.pop()
            if not self._is_distrusted and wire.is_quiet():
                return wire
            self._is_distrusted = True
            wire.close()
        return None

    def _host_and_port(self) -> tuple[str, int]:
        """Raises ValueError for a name that is none."""
        host, _, port = self._server.authority.rpartition(":")
        return host if host.isascii() else host.encode("idna").decode("ascii"), int(port)

    def _connected(self, host: str, port: int, deadline: float) -> Wire:
        address = host.strip("[]"), port
        connection = socket.create_connection(address, min(self._timeout, self._connect_timeout))
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._server.scheme == "https":
                connection.settimeout(max(0.001, deadline - time.monotonic()))
                context = self._tls or ssl.create_default_context()
                connection = context.wrap_socket(connection, server_hostname=self._server_name or address[0])
        except BaseException:
            connection.close()
            raise
        wire = Wire(connection)
        if self._server.scheme == "http" and not wire.is_quiet():
            wire.close()
            raise ValueError("it answered before it was asked")
        return wire

    def _body(self, response: http.client.HTTPResponse) -> bytes:
        """Raises OverflowError above the limit, http.client.HTTPException where it broke off."""
        chunks, size = [], 0
        try:
            while chunk := response.read(CHUNK):
                size += len(chunk)
                if size > self._max_body_bytes:
                    raise OverflowError
                chunks.append(chunk)
        except ConnectionError as error:
            raise http.client.IncompleteRead(b"") from error
        if response.length:  # read() of a number of bytes does not complain
            raise http.client.IncompleteRead(b"", response.length)
        return b"".join(chunks)


def _send(wire: Wire, target: str, headers: Mapping[str, str]) -> None:
    """Raises ValueError for what does not belong into a header field."""
    sender = http.client.HTTPConnection("")
    sender.sock = wire
    sender.putrequest("GET", target, skip_host=True, skip_accept_encoding=True)
    for name, value in {**headers, "accept-encoding": ACCEPT_ENCODING}.items():
        sender.putheader(name, value.encode())
    sender.endheaders()


def _answered(wire: Wire) -> http.client.HTTPResponse:
    """The answer's head, after those of interim answers. Raises http.client.HTTPException, of which
    RemoteDisconnected where the connection ended before."""
    for _ in range(INTERIM_MAX):
        response = http.client.HTTPResponse(wire, method="GET")  # type: ignore[arg-type]  # has what is used
        try:
            response.begin()
        except http.client.HTTPException as error:
            if wire.has_ended:
                raise http.client.RemoteDisconnected("") from error
            raise
        if wire.has_ended:  # it takes the end for an empty line
            raise http.client.RemoteDisconnected("")
        if response.status >= 200:
            return response
    raise http.client.HTTPException("interim answers without end")


def _fields(response: http.client.HTTPResponse) -> Fields:
    """Raises http.client.HTTPException for a head of which one cannot say where its body ends: the library
    reads on after lines that are no fields, and takes one of two lengths (RFC 9112 6.3)."""
    head = response.headers
    fields = fields_of((name, _text(value)) for name, value in head.items())
    length, coding = joined(fields, "content-length"), joined(fields, "transfer-encoding")
    if head.defects or (length is not None and (coding is not None or not _is_number(length))):
        raise http.client.HTTPException("a head that is not HTTP's")
    if coding is not None and coding.lower() != "chunked":
        raise http.client.HTTPException("another transfer coding than chunked")
    return fields


def _text(value: str) -> str:
    """As aiohttp reads it, so that both store the same."""
    return value.encode("latin-1").decode("utf-8", "surrogateescape")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()
