"""Pages and documents that no cache stores: ``/status`` of a service, one document by its URL."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any, Final

import orjson

from specmux_aggregator.errors import SourceError, SourceUnreachable
from specmux_aggregator.model.document_urls import SWAGGER_PATH
from specmux_converters.document import DEFAULT_LIMITS
from specmux_tools.sources.access import access_of
from specmux_tools.sources.options import SourceOptions
from specmux_tools.sources.remote.fetching import fetched

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
        fetched(access, path, most=ANSWER_MAX, timeout=min(TIMEOUT, options.request_timeout))
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
        fetched(
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
