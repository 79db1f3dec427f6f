"""One document from a URL, with the credentials of a command's source options."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Final

import aiohttp

from specmux_aggregator.commands.document_files import FileRefused
from specmux_aggregator.sources.access import ServerAccess, access_of
from specmux_aggregator.sources.options import SourceOptions
from specmux_converters.document import DEFAULT_LIMITS

_SECONDS: Final = 60.0
_ACCEPT: Final = "application/json, application/yaml;q=0.5, */*;q=0.1"


def download(source: SourceOptions) -> bytes:
    """The body. Raises FileRefused for any answer but 200, SpecmuxError for options that cannot be used."""
    url = source.server or ""
    base, question, query = url.partition("?")
    access = access_of(replace(source, server=base))
    return asyncio.run(_download(access, f"{access.url}{question}{query}"))


async def _download(access: ServerAccess, url: str) -> bytes:
    most = DEFAULT_LIMITS.max_bytes
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_SECONDS)) as session,
            session.get(
                url,
                headers={"Accept": _ACCEPT, **access.headers},
                ssl=access.tls or True,
                proxy=access.proxy,
                server_hostname=access.server_name,
            ) as answer,
        ):
            if answer.status != 200:
                raise FileRefused(url, f"answered {answer.status}")
            body = await answer.content.read(most + 1)
            while len(body) <= most and (more := await answer.content.read(most + 1 - len(body))):
                body += more
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
        raise FileRefused(url, str(error) or type(error).__name__) from error
    if len(body) > most:
        raise FileRefused(url, f"more than {most} bytes")
    return body
