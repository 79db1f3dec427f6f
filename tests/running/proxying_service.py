"""The service in front of one backend, with resources switched on, for tests of what is passed on."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson

from deadline import DEADLINE
from fakes.streaming_backend import Script, StreamingBackend, answer_ok, streaming
from running.service import Client, backend, service
from running.wire_client import Answer, connected
from specmux_aggregator.config.settings import ProxySettings

APPS = "apis/apps/v1"
THINGS = f"/{APPS}/namespaces/a/things"
ON = ProxySettings(resources=True, answer_timeout=DEADLINE)
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


@asynccontextmanager
async def proxying(
    script: Script = answer_ok, **settings: Any
) -> AsyncIterator[tuple[StreamingBackend, Client]]:
    """One backend, and the service in front of it with resources switched on."""
    async with (
        streaming(StreamingBackend(script=script)) as origin,
        service(backend("a", origin.url), **{"proxy": ON, **settings}) as client,
    ):
        await client.ready()
        yield origin, client


def reason_of(body: bytes) -> str:
    status = orjson.loads(body)
    assert status["kind"] == "Status"
    return str(status["reason"])


async def exchange(client: Client, *sent: bytes) -> list[tuple[Answer, bytes]]:
    """Send all at once; the answers until the server closes."""
    answers = []
    async with connected(client.base) as wire:
        await wire.send(b"".join(sent))
        with contextlib.suppress(asyncio.IncompleteReadError):
            while True:
                answers.append(await wire.answer())
    return answers
