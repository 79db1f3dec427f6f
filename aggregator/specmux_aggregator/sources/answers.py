"""One GET of a page that is no OpenAPI document, such as ``/status``; nothing of it is stored."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import aiohttp
import orjson

from specmux_aggregator.errors import SourceUnreachable
from specmux_aggregator.sources.access import ServerAccess, access_of
from specmux_aggregator.sources.options import SourceOptions

TIMEOUT: Final = 10.0
ANSWER_MAX: Final = 64 * 1024 * 1024


def answer_of(options: SourceOptions, path: str, *, what: str) -> dict[str, Any]:
    """The JSON object at ``path``. ``what``: the server that has it.

    Raises SourceError, SourceUnreachable.
    """
    access = access_of(options)
    status, body = asyncio.run(_asked(access, path))
    if status == 404:
        raise SourceUnreachable(f"{access.url}: no {path} there; check the URL: it has to be that of {what}")
    if status in (401, 403):
        raise SourceUnreachable(f"{access.url}: the server answered {status}; give a token with --token-file")
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError:
        value = None
    if status != 200 or not isinstance(value, dict):
        raise SourceUnreachable(f"{access.url}{path}: {status}, and no JSON object: it is not {what}")
    return value


async def _asked(access: ServerAccess, path: str) -> tuple[int, bytes]:
    try:
        async with (
            aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT)) as session,
            session.get(
                access.url + path,
                headers={**access.headers, "User-Agent": "specmux"},
                ssl=access.tls or True,
                proxy=access.proxy,
                server_hostname=access.server_name,
                allow_redirects=False,
            ) as response,
        ):
            return response.status, await response.content.read(ANSWER_MAX)
    except aiohttp.ClientConnectorCertificateError as error:
        reason = getattr(error.certificate_error, "verify_message", "")
        raise SourceUnreachable(
            f"{access.url}: its certificate was refused: {reason}; give the server's CA with --ca-file"
        ) from error
    except TimeoutError as error:
        raise SourceUnreachable(f"{access.url}: no answer within {TIMEOUT:g} s") from error
    except (aiohttp.ClientError, OSError) as error:
        raise SourceUnreachable(
            f"{access.url}: {_reason(error)}; is it running, and is this its port?"
        ) from error


def _reason(error: Exception) -> str:
    # Our own words and the system's: an exception's text can repeat what the server sent.
    if isinstance(error, OSError) and error.errno:
        import os

        return os.strerror(error.errno).lower()
    return "no HTTP answer"
