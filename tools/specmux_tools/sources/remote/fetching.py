"""One GET with a command's credentials, for answers that no cache stores: a status page, a document's URL.

The body is read to its end, within a bound. A redirect is followed within the server alone: credentials are
shown to nobody else.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Final
from urllib.parse import urljoin, urlsplit

import aiohttp
from yarl import URL

from specmux_aggregator.errors import SourceUnreachable
from specmux_cache.access.server_access import ClientAccess
from specmux_cache.http.connection_faults import by_proxy, proxy_step, reason_of, tls_step
from specmux_converters.errors import cut
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.conformance import Ask, HTTPAnswer

CHUNK: Final = 64 * 1024
REDIRECTED: Final = (301, 302, 303, 307, 308)


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """The status and the whole body."""

    status: int
    body: bytes


@asynccontextmanager
async def asking(access: ClientAccess, *, most: int, timeout: float) -> AsyncIterator[Ask]:
    """What sends one GET after the other to a server, and gives back whatever it answers, redirects too.

    ``most``: bytes of one answer. What it gives raises SourceUnreachable.
    """
    async with aiohttp.ClientSession(
        timeout=aiohttp.ClientTimeout(total=timeout), auto_decompress=False
    ) as session:

        async def ask(target: str, fields: Mapping[str, str]) -> HTTPAnswer:
            url = access.url + target
            headers = {"User-Agent": "specmux", **access.headers, **fields}
            with _unreachable(url, timeout, access.proxy):
                async with session.get(
                    URL(url, encoded=True),
                    headers=headers,
                    skip_auto_headers=("Accept-Encoding",),
                    ssl=access.tls or True,
                    proxy=access.proxy,
                    server_hostname=access.server_name,
                    allow_redirects=False,
                ) as response:
                    answered = {name.lower(): value for name, value in response.headers.items()}
                    return HTTPAnswer(response.status, answered, await _body(response, url, most))

        yield ask


async def fetched(
    access: ClientAccess, path: str, *, most: int, timeout: float, redirects: int = 5, accept: str = "*/*"
) -> FetchedPage:
    """The answer at ``path``, which may begin with "?" where the URL is the document's own.

    ``redirects``: how many are followed. Raises SourceUnreachable, for more than ``most`` bytes too.
    """
    url = access.url + path
    headers = {"Accept": accept, "User-Agent": "specmux", **access.headers}
    with _unreachable(url, timeout, access.proxy):
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=timeout)) as session:
            for _ in range(redirects + 1):
                async with session.get(
                    url,
                    headers=headers,
                    ssl=access.tls or True,
                    proxy=access.proxy,
                    server_hostname=access.server_name,
                    allow_redirects=False,
                ) as response:
                    if response.status not in REDIRECTED:
                        return FetchedPage(response.status, await _body(response, url, most))
                    url = _target(url, response.headers.get("Location", ""))
    raise SourceUnreachable(f"{url}: more than {redirects} redirects")


@contextmanager
def _unreachable(url: str, timeout: float, proxy: str | None) -> Iterator[None]:
    """Raises SourceUnreachable for whatever ends an exchange with ``url``."""
    try:
        yield
    except TimeoutError as error:
        raise SourceUnreachable(f"{url}: {by_proxy(proxy, f'no answer within {timeout:g} s')}") from error
    except (aiohttp.ClientError, OSError, ValueError) as error:
        said = f"it answered {error.status}" if isinstance(error, aiohttp.ClientHttpProxyError) else None
        reason = by_proxy(proxy, said or reason_of(error))
        step = tls_step(reason) or proxy_step(reason) or "is it running, and is this its port?"
        raise SourceUnreachable(f"{url}: {reason}; {step}") from error


async def _body(response: aiohttp.ClientResponse, url: str, most: int) -> bytes:
    # StreamReader.read(n) gives what has arrived, n bytes at most: not the body.
    body = bytearray()
    async for piece in response.content.iter_chunked(CHUNK):
        body += piece
        if len(body) > most:
            raise SourceUnreachable(f"{url}: more than {most} bytes")
    return bytes(body)


def _target(url: str, location: str) -> str:
    """Where a redirect leads. Raises SourceUnreachable where that is another server."""
    target = urljoin(url, location)
    if not location or urlsplit(target)[:2] != urlsplit(url)[:2]:
        # Without its query: a login page's holds what nobody should paste.
        shown = cut(urlsplit(target)._replace(query="", fragment="").geturl())
        raise SourceUnreachable(f"{url}: redirects to {shown}; name that URL, or log in there")
    return target
