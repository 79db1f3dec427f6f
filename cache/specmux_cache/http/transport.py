"""Send a GET over HTTP; the answer is complete or an error.

Invariant: aiohttp's exceptions do not leave this module, and no answer is read beyond its limit, compressed
or not.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Final, Self

import aiohttp

from specmux_cache.errors import BadAnswer, ServerUnreachable
from specmux_cache.http.connection_faults import by_proxy, reason_of
from specmux_cache.http.connections.connector import CheckedConnector
from specmux_cache.http.messages import Answer, Fields, fields_of
from specmux_cache.http.unpacking import ACCEPT_ENCODING, is_packed, unpacked
from specmux_converters.lazy.dataclasses import dataclass

CHUNK: Final = 64 * 1024
INLINE: Final = 128 * 1024
"""Bytes of a compressed body up to which decompressing it is faster than passing it to a thread."""


@dataclass(frozen=True, slots=True)
class Streaming:
    """An answer with an endless body. ``lines`` raises ServerUnreachable and BadAnswer."""

    status: int
    media_type: str
    lines: AsyncIterator[bytes]


class Transport:
    """Connections to one server. Raises ServerUnreachable and BadAnswer; returns any status."""

    def __init__(
        self,
        *,
        headers: Mapping[str, str],
        tls: ssl.SSLContext | None,
        proxy: str | None = None,
        server_name: str | None = None,
        connect_timeout: float,
        timeout: float,
        max_body_bytes: int,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._headers = dict(headers)
        self._tls = tls
        self._proxy = proxy
        self._server_name = server_name
        self._timeout = aiohttp.ClientTimeout(total=timeout, sock_connect=connect_timeout)
        self._max_body_bytes = max_body_bytes
        self._clock = clock
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            headers={"User-Agent": "specmux-cache", **self._headers},
            connector=CheckedConnector(ssl=self._tls, limit=16),
            timeout=self._timeout,
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()

    async def get(self, url: str, fields: Fields) -> Answer:
        """Follows no redirect. The body is decompressed, and header fields about its coding are removed."""
        if self._session is None:
            raise RuntimeError("the cache is not open: use it as a context manager")
        requested_at = self._clock()
        try:
            async with self._session.get(
                url,
                headers={**dict(fields), "Accept-Encoding": ACCEPT_ENCODING},
                allow_redirects=False,
                proxy=self._proxy,
                server_hostname=self._server_name,
            ) as response:
                received = fields_of(response.headers.items())
                status, body = response.status, await self._body(response, url)
        except aiohttp.ClientHttpProxyError as error:
            raise ServerUnreachable(by_proxy(self._proxy, f"it answered {error.status}"), url=url) from error
        except (aiohttp.ClientPayloadError, aiohttp.ClientResponseError) as error:
            raise BadAnswer("the response was cut off or is not HTTP", url=url) from error
        except aiohttp.ConnectionTimeoutError as error:
            reason = f"no connection within {self._timeout.sock_connect:g} s"
            raise ServerUnreachable(by_proxy(self._proxy, reason), url=url) from error
        except TimeoutError as error:
            reason = f"no whole answer within {self._timeout.total:g} s"
            raise ServerUnreachable(by_proxy(self._proxy, reason), url=url) from error
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ServerUnreachable(by_proxy(self._proxy, _reason(error)), url=url) from error
        return await self._unpacked(Answer(status, received, body, requested_at, self._clock()), url)

    @asynccontextmanager
    async def stream(self, url: str, *, accept: str, silence: float) -> AsyncIterator[Streaming]:
        """A GET whose body is read as it arrives. ``silence``: seconds without a byte after which it ends."""
        if self._session is None:
            raise RuntimeError("the cache is not open: use it as a context manager")
        timeout = aiohttp.ClientTimeout(
            total=None, sock_connect=self._timeout.sock_connect, sock_read=silence
        )
        try:
            async with self._session.get(
                url,
                headers={"Accept": accept, "Accept-Encoding": "identity"},
                allow_redirects=False,
                proxy=self._proxy,
                server_hostname=self._server_name,
                timeout=timeout,
            ) as response:
                yield Streaming(response.status, response.content_type, self._lines(response, url))
        except aiohttp.ClientHttpProxyError as error:
            raise ServerUnreachable(by_proxy(self._proxy, f"it answered {error.status}"), url=url) from error
        except (aiohttp.ClientPayloadError, aiohttp.ClientResponseError) as error:
            raise BadAnswer("the response was cut off or is not HTTP", url=url) from error
        except TimeoutError as error:
            raise ServerUnreachable("timed out: no data arrived", url=url) from error
        except (aiohttp.ClientError, OSError) as error:
            raise ServerUnreachable(by_proxy(self._proxy, _reason(error)), url=url) from error

    async def _lines(self, response: aiohttp.ClientResponse, url: str) -> AsyncIterator[bytes]:
        """An unterminated line at the end of the body is dropped."""
        rest = b""
        async for piece in response.content.iter_any():
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                yield line
            if len(rest) > self._max_body_bytes:
                raise BadAnswer("a line is longer than max_body_bytes", url=url)

    async def _body(self, response: aiohttp.ClientResponse, url: str) -> bytes:
        chunks, size = [], 0
        async for chunk in response.content.iter_chunked(CHUNK):
            size += len(chunk)
            if size > self._max_body_bytes:
                raise BadAnswer("the body is larger than max_body_bytes", url=url)
            chunks.append(chunk)
        return b"".join(chunks)

    async def _unpacked(self, answer: Answer, url: str) -> Answer:
        if not is_packed(answer):
            return answer
        if len(answer.body) <= INLINE:
            return unpacked(answer, self._max_body_bytes, url)
        return await asyncio.to_thread(unpacked, answer, self._max_body_bytes, url)


def _reason(error: Exception) -> str:
    if isinstance(error, aiohttp.ServerDisconnectedError) and error.__cause__ is None:
        return "it closed the connection before it answered"
    return reason_of(error)
