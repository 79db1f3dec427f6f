"""Connections to one backend: TLS, proxy, and the service's credentials.

Requests carry only what this backend's configuration and the caller say: no other backend's credential can
enter. Redirects are never followed.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
import ssl
from collections.abc import AsyncIterable, AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final

import aiohttp
from yarl import URL

from specmux_aggregator.config.settings import PollingSettings
from specmux_aggregator.model.backend import Backend
from specmux_aggregator.model.failure import Cause, Failure
from specmux_aggregator.upstream.connections.addresses import Address, DaemonResolver
from specmux_aggregator.upstream.connections.connector import CheckedConnector, ServerRecord
from specmux_aggregator.upstream.connections.direct import DirectAnswer, UnreadAnswer, send_get
from specmux_aggregator.upstream.connections.opening import head_of, is_sendable, stream_socket
from specmux_aggregator.upstream.credentials import Identities, RequestIdentity, Unusable

CONNECTIONS: Final = 16
"""Open connections to one backend."""

AHEAD: Final = 256 * 1024
"""Bytes of one answer that may be buffered; at twice as many, reading pauses."""

KEPT: Final = 8
"""Number of cached URLs and timeouts."""

SHORT: Final = 32
"""Characters of the longest target whose URL is cached."""

CLOSED: Final = Failure(Cause.INTERNAL, "the client was closed: its backend was removed or changed")

ADDRESSES_KEPT: Final = 30.0
"""Seconds for which a host's addresses are cached."""

USER_AGENT: Final = "specmux"

_UNASKED: Final = ("Accept", "Accept-Encoding", "Content-Type")
"""Fields that aiohttp would add by itself."""

_KEEPALIVE: Final = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3))
"""Seconds and attempts: a vanished peer is noticed within a minute, even on a connection that only
receives."""


class BackendTransport:
    """Sends requests to one backend. Lives on one event loop until ``close``."""

    def __init__(
        self,
        backend: Backend,
        *,
        polling: PollingSettings,
        identities: Identities | None = None,
        address: Address | None = None,
        connections: int = CONNECTIONS,
        record: ServerRecord | None = None,
        ahead: int = AHEAD,
        keeps_after_no_body: bool = True,
    ) -> None:
        """``identities``: shared with others that use the same backend; None: own. ``address``: of one
        server, for a backend with several and no proxy. ``record``: shared with others to the same server.
        ``keeps_after_no_body``: as in CheckedConnector."""
        self._backend = backend
        self._polling = polling
        self._address = address
        self._connections = connections
        self._record = ServerRecord() if record is None else record
        self._ahead = ahead
        self._keeps_after_no_body = keeps_after_no_body
        self._identities = Identities() if identities is None else identities
        self._identity = self._identities.take(backend)
        self._proxy = None if backend.proxy_url is None else URL(backend.proxy_url)
        self._session: aiohttp.ClientSession | None = None
        self._routes: dict[ssl.SSLContext | None, aiohttp.ClientRequest] = {}
        """The connection parameters of ``ask``, for the TLS context used last."""
        self._prefix = _prefix(backend.url) if self._proxy is None and keeps_after_no_body else None
        """Prefix of the targets that ``ask`` sends; None if the session sends all requests."""
        self._urls: dict[str, URL] = {}
        self._timeouts: dict[float | None, aiohttp.ClientTimeout] = {}
        self.is_closed = False

    @contextlib.asynccontextmanager
    async def request(
        self,
        method: str,
        target: str,
        *,
        fields: Mapping[str, str] | Sequence[tuple[str, str]],
        body: bytes | AsyncIterable[bytes] | None = None,
        idle_timeout: float | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """The answer, its body unread. Raises credentials.Unusable and failures.TRANSPORT_ERRORS.

        A 401 is returned only when there are no newer credentials to try. ``target`` is sent unchanged, and
        headers only as in ``fields``. ``idle_timeout``: seconds without a byte, if it differs from the
        backend's; infinite: none.
        """
        if self.is_closed:
            raise Unusable(CLOSED)
        shown = await self._identity.current()
        timeout = self._timeout(idle_timeout)
        given = fields.items() if isinstance(fields, Mapping) else fields
        async with contextlib.AsyncExitStack() as stack:
            for may_renew in (True, False):
                response = await stack.enter_async_context(
                    self._open().request(
                        method,
                        self._url(target),
                        headers=[*given, *shown.fields],
                        skip_auto_headers=_UNASKED,
                        data=body,
                        ssl=shown.context if shown.context is not None else True,
                        server_hostname=self._backend.tls.server_name,
                        proxy=self._proxy,
                        timeout=timeout,
                        allow_redirects=False,
                    )
                )
                if response.status != 401 or not may_renew or not self._identity.note_refusal(shown):
                    break
                await stack.aclose()
                shown = await self._identity.current()
            yield response

    def ask(
        self, target: str, *, fields: Mapping[str, str], idle_timeout: float | None = None
    ) -> AbstractAsyncContextManager[UnreadAnswer]:
        """Send like ``request`` a GET without a body, of which only the answer matters."""
        if self._prefix is None or not is_sendable(self._prefix + target):
            return self.request("GET", target, fields=fields, idle_timeout=idle_timeout)
        return _Closing(self._answer(self._prefix + target, fields, idle_timeout))

    async def _answer(
        self, target: str, fields: Mapping[str, str], idle_timeout: float | None
    ) -> DirectAnswer:
        if self.is_closed:
            raise Unusable(CLOSED)
        shown = await self._identity.current()
        answer = await self._send(target, fields, shown, idle_timeout)
        if answer.status == 401 and self._identity.note_refusal(shown):
            answer.close()
            shown = await self._identity.current()
            answer = await self._send(target, fields, shown, idle_timeout)
        return answer

    async def _send(
        self, target: str, fields: Mapping[str, str], shown: RequestIdentity, idle_timeout: float | None
    ) -> DirectAnswer:
        connector = self._open().connector
        if connector is None:
            raise Unusable(CLOSED)
        route = self._route(shown.context)
        own = (("Host", route.headers["Host"]), ("User-Agent", USER_AGENT))
        head = head_of(f"GET {target} HTTP/1.1", (*own, *fields.items(), *shown.fields))
        return await send_get(connector, route, head, timeout=self._timeout(idle_timeout), ahead=self._ahead)

    def _route(self, context: ssl.SSLContext | None) -> aiohttp.ClientRequest:
        route = self._routes.get(context)
        if route is None:
            route = aiohttp.ClientRequest(
                "GET",
                URL(self._backend.url, encoded=True),
                loop=asyncio.get_running_loop(),
                ssl=context if context is not None else True,
                server_hostname=self._backend.tls.server_name,
            )
            self._routes = {context: route}
        return route

    async def close(self) -> None:
        """Close every connection. Running and later requests fail."""
        if not self.is_closed:
            self.is_closed = True
            await self._identities.give_back(self._backend)
        if self._session is not None:
            await self._session.close()

    def _url(self, target: str) -> URL:
        """The URL of a target, cached: a thousand backends are polled every few seconds."""
        url = self._urls.get(target)
        if url is None:
            url = URL(self._backend.url + target, encoded=True)
            if len(self._urls) < KEPT and len(target) <= SHORT:
                self._urls[target] = url
        return url

    def _timeout(self, idle_timeout: float | None) -> aiohttp.ClientTimeout:
        timeout = self._timeouts.get(idle_timeout)
        if timeout is None:
            # The caller limits the total time.
            timeout = aiohttp.ClientTimeout(
                total=None,
                connect=self._polling.connect_timeout if self._record.openings is None else None,
                sock_connect=self._polling.connect_timeout,
                sock_read=self._polling.idle_timeout if idle_timeout is None else _finite(idle_timeout),
            )
            if len(self._timeouts) < KEPT:
                self._timeouts[idle_timeout] = timeout
        return timeout

    def _open(self) -> aiohttp.ClientSession:
        if self.is_closed:
            raise Unusable(CLOSED)
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=CheckedConnector(
                    keeps_after_no_body=self._keeps_after_no_body,
                    limit=self._connections,
                    resolver=DaemonResolver(),
                    addresses_kept=ADDRESSES_KEPT,
                    address=self._address,
                    record=self._record,
                    new_socket=_socket,
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": USER_AGENT},
                auto_decompress=False,
                read_bufsize=self._ahead,
            )
        return self._session


class _Closing:
    """Closes an answer without the generator that every answer would cost."""

    __slots__ = ("_answer", "_coming")

    _answer: DirectAnswer
    """Set on entry."""

    def __init__(self, coming: Coroutine[None, None, DirectAnswer]) -> None:
        self._coming = coming

    async def __aenter__(self) -> DirectAnswer:
        self._answer = await self._coming
        return self._answer

    async def __aexit__(self, *_: object) -> None:
        self._answer.close()


def _prefix(url: str) -> str | None:
    """The path that all targets begin with; None where a URL has more than a host and a path."""
    parsed = URL(url, encoded=True)
    is_usual = parsed.user is None and parsed.password is None and not parsed.raw_query_string
    return parsed.raw_path.rstrip("/") if is_usual and parsed.host is not None else None


def _finite(seconds: float) -> float | None:
    return None if math.isinf(seconds) else seconds


def _socket(family: socket.AddressFamily) -> socket.socket:
    made = stream_socket(family)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE:
        if hasattr(socket, name):
            made.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
    return made
