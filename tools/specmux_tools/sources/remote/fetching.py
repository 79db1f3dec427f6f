"""One GET with a command's credentials, for answers that no cache stores: a status page, a document's URL.

The body is read to its end, within a bound. A redirect is followed within the server alone: credentials are
shown to nobody else.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urljoin, urlsplit

import aiohttp
import orjson
from yarl import URL

from specmux_aggregator.errors import SourceError, SourceUnreachable
from specmux_aggregator.model.document_urls import SWAGGER_PATH
from specmux_cache.access.server_access import ClientAccess
from specmux_cache.http.connection_faults import by_proxy, proxy_step, reason_of, tls_step
from specmux_converters.document import DEFAULT_LIMITS
from specmux_converters.errors import cut
from specmux_converters.lazy.dataclasses import dataclass
from specmux_tools.conformance import Ask, HTTPAnswer
from specmux_tools.sources.access import access_of
from specmux_tools.sources.options import SourceOptions

CHUNK: Final = 64 * 1024
REDIRECTED: Final = (301, 302, 303, 307, 308)


@dataclass(frozen=True, slots=True)
class FetchedPage:
    """The status and the whole body."""

    status: int
    body: bytes


@asynccontextmanager
async def asking(access: ClientAccess, *, most: int, timeout: float) -> AsyncIterator[Ask]:
    """A function that sends one GET after the other to a server, and returns any answer, redirects too.

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


async def fetch_page(
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
        unresolved = "check its spelling, and the network" if "not resolve" in reason else None
        step = tls_step(reason) or proxy_step(reason) or unresolved or "is it running, and is this its port?"
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


TIMEOUT: Final = 10.0
"""Seconds for a page, at most."""
ANSWER_MAX: Final = 64 * 1024 * 1024
_ACCEPT: Final = "application/json, application/yaml;q=0.5, */*;q=0.1"


def answer_of(options: SourceOptions, path: str, *, what: str) -> dict[str, Any]:
    """The JSON object at ``path``. ``what``: the server that has it.

    Raises SourceError, SourceUnreachable.
    """
    access = access_of(options)
    answer = asyncio.run(
        fetch_page(access, path, most=ANSWER_MAX, timeout=min(TIMEOUT, options.request_timeout))
    )
    if answer.status == 404:
        raise SourceUnreachable(f"{access.url}: no {path} there; check the URL: it has to be that of {what}")
    if answer.status in (401, 403):
        raise SourceUnreachable(
            f"{access.url}: the server answered {answer.status}; give a token with --token-file"
        )
    try:
        value = orjson.loads(answer.body)
    except orjson.JSONDecodeError:
        value = None
    if answer.status != 200 or not isinstance(value, dict):
        raise SourceUnreachable(f"{access.url}{path}: {answer.status}, and no JSON object: it is not {what}")
    return value


def download(source: SourceOptions) -> bytes:
    """The document at the URL of ``--server``, its query included. Raises SourceError, SourceUnreachable."""
    base, question, query = (source.server or "").partition("?")
    server = base.removesuffix(SWAGGER_PATH)
    rest = f"{base.removeprefix(server)}{question}{query}"
    access = access_of(replace(source, server=server))
    answer = asyncio.run(
        fetch_page(
            access,
            rest,
            most=DEFAULT_LIMITS.max_bytes,
            timeout=source.request_timeout,
            accept=_ACCEPT,
        )
    )
    if answer.status != 200:
        raise SourceError(f"{access.url}{rest}: answered {answer.status}")
    return answer.body
