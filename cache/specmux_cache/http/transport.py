"""Send a GET over HTTP; the answer is complete or an error. Blocking: an event loop calls it in threads.

Invariants: no answer is read beyond its limit, compressed or not; a connection is used again only if every
byte that came on it belonged to an answer; nothing goes to the server that its caller did not name, or to
the proxy that stands for it.

Without a library, and without ``ssl`` where nothing is encrypted: aiohttp takes 0.2 s to import.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote, urlsplit

from specmux_cache.errors import BadAnswer, ServerUnreachable
from specmux_cache.http.answer_reader import (
    ACCEPT_ENCODING,
    AnswerHead,
    EarlyEnd,
    MalformedAnswer,
    is_packed,
    needs_dictionary,
    read_body,
    read_head,
    send_head,
    unpack_body,
)
from specmux_cache.http.caching import Answer, Fields
from specmux_cache.http.connection_faults import by_proxy, reason_of
from specmux_cache.http.server import Server
from specmux_cache.http.wire import Address, Wire

if TYPE_CHECKING:  # TLS takes longer to import than a warm command takes, threads a part of it
    import ssl
    from concurrent.futures import ThreadPoolExecutor

    from specmux_cache.http.dictionaries import UsableDictionary

SENT_AS_IT_IS: Final = "/:@!$&'()*+,;=-._~%?"
USUAL_PORTS: Final = {"http": 80, "https": 443}
GRACE: Final = 1.0
"""Seconds after its timeout in which a request is expected to end by itself."""
IDLE_MAX: Final = 15.0
"""Seconds after which a connection is not used again: what stands between may have forgotten it."""


class _ConnectionTimeoutError(TimeoutError):
    """No connection within ``connect_timeout``."""


class _ProxyRefusal(Exception):
    """The proxy opens no tunnel. Its text says why."""


class Transport:
    """Connections to one server; calls from several threads have one each. Raises ServerUnreachable and
    BadAnswer; returns any status."""

    def __init__(
        self,
        server: Server,
        *,
        headers: Mapping[str, str] = MappingProxyType({}),
        tls: ssl.SSLContext | None = None,
        server_name: str | None = None,
        proxy: str | None = None,
        connect_timeout: float,
        timeout: float,
        max_body_bytes: int,
        clock: Callable[[], float] = time.time,
        threads: ThreadPoolExecutor | None = None,
    ) -> None:
        """Times are seconds; ``timeout`` is for a whole answer. ``threads``: where an event loop's requests
        run, shut down by ``close``; None: where they are made."""
        self._server = server
        self._headers = {
            "accept": "*/*",
            "user-agent": "specmux-cache",
            **{name.lower(): value for name, value in headers.items()},
        }
        self._tls = tls
        self._server_name = server_name
        self._proxy = proxy
        self._connect_timeout = connect_timeout
        self._timeout = timeout
        self._late = f"no whole answer within {timeout:g} s"
        self.max_body_bytes = max_body_bytes
        self._clock = clock
        self._threads = threads
        self._kept: list[Wire] = []
        self._busy: set[Wire] = set()
        self._is_closed = False
        self._is_distrusted = False
        """The server was seen to send more than its answers: none of its connections is used twice."""

    async def close(self) -> None:
        """End what runs, and wait for it."""
        self._is_closed = True
        for wire in tuple(self._busy):
            wire.abort()
        if self._threads is not None:
            from asyncio import to_thread

            await to_thread(self._threads.shutdown, cancel_futures=True)
        self.close_in_place()

    def close_in_place(self) -> None:
        """Close the connections where no other thread uses one."""
        self._is_closed = True
        while self._kept:
            self._kept.pop().close()

    async def get(self, url: str, fields: Fields, dictionary: UsableDictionary | None = None) -> Answer:
        """Follows no redirect. The body is unpacked, and the fields that described its packing are gone.
        ``url`` is one of the server's. ``dictionary``: what the server may compress the answer with."""
        if self._threads is None:
            return self.get_in_place(url, dict(fields), dictionary=dictionary)
        from asyncio import get_running_loop, timeout

        with self.reporting(url, late=self._late):
            # For the system, which may look up a name for longer: its thread goes on alone.
            async with timeout(self._timeout + GRACE):
                work = partial(self.get_in_place, url, dict(fields), dictionary=dictionary)
                return await get_running_loop().run_in_executor(self._threads, work)

    def get_in_place(
        self,
        url: str,
        fields: Mapping[str, str],
        *,
        unpacks: bool = True,
        dictionary: UsableDictionary | None = None,
    ) -> Answer:
        """Send a GET in the calling thread, as ``get`` does. Names of ``fields`` are in lower case.
        ``unpacks``: otherwise the body is as it came, in a coding that ``fields`` ask for."""
        requested_at = self._clock()
        with self.reporting(url, late=self._late):
            deadline = time.monotonic() + self._timeout
            headers = {**self._headers, **fields}
            if unpacks:
                headers["accept-encoding"] = ACCEPT_ENCODING
            if dictionary is not None:
                headers |= dictionary.fields
            wire = self._kept_wire()
            answer = None
            if wire is not None:
                with suppress(ConnectionError):  # it was closed as we asked
                    answer = self._exchange(wire, deadline, url, headers)
            if answer is None:
                answer = self._exchange(Wire(deadline), deadline, url, headers)
            head, body = answer
        received = Answer(head.status, head.fields, body, requested_at, self._clock())
        if dictionary is not None and needs_dictionary(received):
            return dictionary.unpack(received, self.max_body_bytes, url)
        does_unpack = unpacks and is_packed(received)
        return unpack_body(received, self.max_body_bytes, url) if does_unpack else received

    def begin(self, wire: Wire, url: str, fields: Mapping[str, str]) -> AnswerHead:
        """Connect a wire, unless it is, send a GET and read the head of the answer; the wire is its caller's.
        Raises OSError, ValueError, EarlyEnd, MalformedAnswer."""
        host, port = self._host_and_port()
        if not wire.is_connected:
            self._connect(wire, host, port)
        is_usual = port == USUAL_PORTS[self._server.scheme]
        headers = {"host": host if is_usual else f"{host}:{port}", **self._headers, **fields}
        origin = f"{self._server.scheme}://{self._server.authority}"
        target = quote(url.removeprefix(origin), safe=SENT_AS_IT_IS)
        if self._proxy is not None and self._server.scheme == "http":
            target, headers = f"{origin}{target}", headers | self._proof()
        try:
            send_head(wire, f"GET {target}", headers)
        except OSError as error:
            # Who refuses a certificate, with TLS 1.3, says so and ends while the request is written.
            if not isinstance(error, BrokenPipeError) and type(error).__name__ != "SSLEOFError":
                raise
        return read_head(wire)

    def claim(self, wire: Wire) -> None:
        """``close`` aborts it until its ``release``. Raises TimeoutError if that has begun."""
        self._busy.add(wire)
        if self._is_closed:
            raise TimeoutError

    def release(self, wire: Wire) -> None:
        self._busy.discard(wire)

    @contextmanager
    def reporting(self, url: str, *, late: str) -> Iterator[None]:
        """Raise what a caller is told of a request that failed. ``late``: why it was given up in the end."""
        try:
            yield
        except _ProxyRefusal as error:
            raise ServerUnreachable(by_proxy(self._proxy, str(error)), url=url) from error
        except _ConnectionTimeoutError as error:
            reason = f"no connection within {self._connect_timeout:g} s"
            raise ServerUnreachable(by_proxy(self._proxy, reason), url=url) from error
        except TimeoutError as error:
            raise ServerUnreachable(by_proxy(self._proxy, late), url=url) from error
        except EarlyEnd as error:
            reason = "it closed the connection before it answered"
            raise ServerUnreachable(by_proxy(self._proxy, reason), url=url) from error
        except MalformedAnswer as error:
            raise BadAnswer("the response was cut off or is not HTTP", url=url) from error
        except OverflowError as error:
            raise BadAnswer("the body is larger than max_body_bytes", url=url) from error
        except (OSError, ValueError) as error:
            raise ServerUnreachable(by_proxy(self._proxy, reason_of(error)), url=url) from error

    def _exchange(
        self, wire: Wire, deadline: float, url: str, headers: Mapping[str, str]
    ) -> tuple[AnswerHead, bytes]:
        """Raises ConnectionError where no answer came at all."""
        try:
            self.claim(wire)
            wire.begin(deadline)
            head = self.begin(wire, url, headers)
            body = read_body(head.pieces, self.max_body_bytes)
        except BaseException:
            wire.close()
            raise
        finally:
            self.release(wire)
        if not head.is_last and wire.is_quiet() and not self._is_distrusted:
            self._kept.append(wire)
        else:
            self._is_distrusted = self._is_distrusted or (wire.has_stray and not head.is_last)
            wire.close()
        return head, body

    def _kept_wire(self) -> Wire | None:
        while True:
            try:
                wire = self._kept.pop()
            except IndexError:
                return None
            is_recent = time.monotonic() - wire.used_at < IDLE_MAX
            if is_recent and not self._is_distrusted and wire.is_quiet():
                return wire
            self._is_distrusted = self._is_distrusted or wire.has_stray
            wire.close()

    def _host_and_port(self) -> tuple[str, int]:
        """Raises ValueError for a name that is none."""
        host, _, port = self._server.authority.rpartition(":")
        return host if host.isascii() else host.encode("idna").decode("ascii"), int(port)

    def _connect(self, wire: Wire, host: str, port: int) -> None:
        """Raises OSError and ValueError, and _ProxyRefusal."""
        begun = time.monotonic()
        name, is_encrypted = host.strip("[]"), self._server.scheme == "https"
        first, first_port = name, port
        if self._proxy is not None:
            proxy = urlsplit(self._proxy)
            first, first_port = proxy.hostname or "", proxy.port or USUAL_PORTS[proxy.scheme]
        untried = _addresses(first, first_port)
        while True:
            try:
                address = wire.connect(untried, begun + self._connect_timeout)
            except TimeoutError as error:
                raise _ConnectionTimeoutError from error
            try:
                if self._proxy is not None:
                    if self._proxy.startswith("https:"):
                        wire.encrypt(self._context(), first.rstrip("."))
                    if is_encrypted:
                        self._open_tunnel(wire, f"{host}:{port}")
                if is_encrypted:
                    wire.encrypt(self._context(), (self._server_name or name).rstrip("."))
                break
            except OSError as error:
                wire.close()
                untried.remove(address)  # another may succeed
                if not untried or isinstance(error, TimeoutError):
                    raise
        if not is_encrypted and not wire.is_quiet() and wire.has_stray:
            raise ValueError("the server sent data before the request")

    def _context(self) -> ssl.SSLContext:
        import ssl

        if self._tls is None:
            self._tls = ssl.create_default_context()
        return self._tls

    def _open_tunnel(self, wire: Wire, target: str) -> None:
        """Through the proxy (RFC 9110, section 9.3.6)."""
        send_head(wire, f"CONNECT {target}", {"host": target, **self._proof()})
        head = read_head(wire, is_tunnel=True)
        if not 200 <= head.status < 300:
            raise _ProxyRefusal(f"it answered {head.status}")
        if wire.has_stray:
            raise ValueError("the proxy sent data before the request")

    def _proof(self) -> dict[str, str]:
        """The field that authenticates to the proxy."""
        proxy = urlsplit(self._proxy or "")
        if proxy.username is None and proxy.password is None:
            return {}
        from base64 import b64encode

        pair = f"{unquote(proxy.username or '')}:{unquote(proxy.password or '')}".encode("latin-1")
        return {"Proxy-Authorization": f"Basic {b64encode(pair).decode()}"}


def _addresses(host: str, port: int) -> list[Address]:
    """Raises OSError for a name that does not resolve."""
    # As bytes: text is encoded as IDNA, whose tables take a millisecond to import.
    found = socket.getaddrinfo(host.encode("ascii"), port, type=socket.SOCK_STREAM)
    return [(socket.AddressFamily(family), where) for family, _, _, _, where in found]
