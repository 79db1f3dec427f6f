"""One GET over HTTP, whole or not at all, for a program without an event loop: what ``transport`` does
without aiohttp, and without ``ssl`` where the server has no TLS, since both take long to import.

Invariants: no answer is read past its limit, packed or unpacked; a connection is used again only if every
byte that came on it belonged to an answer.

Without proxies. The time that the system takes to look up a host name counts, but is not cut short.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from specmux_cache.errors import BadAnswer, ServerUnreachable
from specmux_cache.http.connection_faults import reason_of
from specmux_cache.http.connections.blocking_reader import (
    EarlyEnd,
    MalformedAnswer,
    WholeAnswer,
    received,
    send,
)
from specmux_cache.http.connections.wire import Wire
from specmux_cache.http.messages import Answer, Fields
from specmux_cache.http.server import Server
from specmux_cache.http.unpacking import ACCEPT_ENCODING, is_packed, unpacked

if TYPE_CHECKING:  # TLS takes longer to import than a warm command takes
    import ssl

SENT_AS_IT_IS: Final = "/:@!$&'()*+,;=-._~%?"
USUAL_PORTS: Final = {"http": 80, "https": 443}


class _ConnectionTimeoutError(TimeoutError):
    """No connection within ``connect_timeout``."""


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
            got = self._asked(url, {**self._headers, **dict(fields), "accept-encoding": ACCEPT_ENCODING})
        except _ConnectionTimeoutError as error:
            raise ServerUnreachable(f"no connection within {self._connect_timeout:g} s", url=url) from error
        except TimeoutError as error:
            raise ServerUnreachable(f"no whole answer within {self._timeout:g} s", url=url) from error
        except EarlyEnd as error:
            raise ServerUnreachable("it closed the connection before it answered", url=url) from error
        except MalformedAnswer as error:
            raise BadAnswer("the response was cut off or is not HTTP", url=url) from error
        except OverflowError as error:
            raise BadAnswer("the body is larger than max_body_bytes", url=url) from error
        except (OSError, ValueError) as error:
            raise ServerUnreachable(reason_of(error), url=url) from error
        answer = Answer(got.status, got.fields, got.body, requested_at, self._clock())
        return unpacked(answer, self._max_body_bytes, url) if is_packed(answer) else answer

    def _asked(self, url: str, headers: Mapping[str, str]) -> WholeAnswer:
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

    def _exchanged(self, wire: Wire, deadline: float, target: str, headers: Mapping[str, str]) -> WholeAnswer:
        """Raises ConnectionError where no answer came at all."""
        wire.begin(deadline)
        try:
            try:
                send(wire, target, headers)
            except OSError as error:
                # Who refuses a certificate, with TLS 1.3, says so and ends while the request is written.
                if not isinstance(error, BrokenPipeError) and type(error).__name__ != "SSLEOFError":
                    raise
            got = received(wire, self._max_body_bytes)
        except BaseException:
            wire.close()
            raise
        if not got.is_last and wire.is_quiet():
            self._kept.append(wire)
        else:
            self._is_distrusted = self._is_distrusted or not got.is_last
            wire.close()
        return got

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
        name = host.strip("[]")
        # As bytes: text is encoded as IDNA, whose tables take a millisecond to import.
        address = name.encode("ascii"), port
        timeout = min(self._timeout, self._connect_timeout)
        try:
            connection = socket.create_connection(address, timeout)  # type: ignore[arg-type]  # the system's takes them
        except TimeoutError as error:
            if self._connect_timeout > self._timeout:
                raise
            raise _ConnectionTimeoutError from error
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._server.scheme == "https":
                connection.settimeout(max(0.001, deadline - time.monotonic()))
                import ssl

                context = self._tls or ssl.create_default_context()
                connection = context.wrap_socket(connection, server_hostname=self._server_name or name)
        except BaseException:
            connection.close()
            raise
        wire = Wire(connection)
        if self._server.scheme == "http" and not wire.is_quiet():
            wire.close()
            raise ValueError("it answered before it was asked")
        return wire
