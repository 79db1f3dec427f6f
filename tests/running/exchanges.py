"""Many exchanges with backends that misframe at random: whose answers came back to whom."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

import aiohttp

from fakes.misframing_backend import Misframing, misframing
from specmux_aggregator.config.settings import PollingSettings
from specmux_aggregator.model.backend import Backend, BackendName
from specmux_aggregator.upstream.connections.whole_body import whole_body
from specmux_aggregator.upstream.transport import BackendTransport

AT_ONCE: Final = 20
EACH: Final = 10
"""Exchanges of one connector, with a backend of its own: from the first stray on it distrusts that, and what
keeps it from that one is what is tried."""


Ask = Callable[[str], Awaitable[tuple[str, str]]]
"""Asks for a target; gives back which request the answer names, and its body."""

Asking = Callable[[str, float], AbstractAsyncContextManager[Ask]]
"""What asks the backend at a URL, for so many seconds at most."""


def by_session(connector: Callable[[], aiohttp.BaseConnector]) -> Asking:
    """By a session of aiohttp over connections of such a connector."""

    @asynccontextmanager
    async def asking(url: str, patience: float) -> AsyncIterator[Ask]:
        timeout = aiohttp.ClientTimeout(total=patience)
        async with aiohttp.ClientSession(connector=connector(), timeout=timeout) as session:

            async def ask(target: str) -> tuple[str, str]:
                async with session.get(url + target) as response:
                    body = await response.read()
                    return response.headers.get("X-Answers", ""), body.decode("latin-1")

            yield ask

    return asking


@asynccontextmanager
async def by_transport(url: str, patience: float) -> AsyncIterator[Ask]:
    """As documents are fetched from a backend."""
    transport = BackendTransport(Backend(name=BackendName("b"), url=url), polling=PollingSettings())

    async def ask(target: str) -> tuple[str, str]:
        async with asyncio.timeout(patience), transport.ask(target, fields={}) as response:
            length = response.content_length
            if length is None:
                body = await response.content.read()
            else:
                body = await whole_body(response.connection, response.content, length)
            return response.headers.get("X-Answers", ""), body.decode("latin-1")

    try:
        yield ask
    finally:
        await transport.close()


async def exchanges_that_went_wrong(
    count: int, asking: Asking, *, patience: float = 10.0
) -> tuple[list[tuple[str, str]], int]:
    """What was asked for, and what came instead; and how many strays the backends sent."""
    wrong: list[tuple[str, str]] = []
    strays = 0

    async def run(seed: int) -> None:
        nonlocal strays
        for start in range(0, count // AT_ONCE, EACH):
            async with (
                misframing(seed * count + start) as backend,
                asking(backend.url, patience) as ask,
            ):
                wrong.extend(await _exchanges(backend, ask, patience))
            strays += backend.strays

    await asyncio.gather(*(run(seed) for seed in range(AT_ONCE)))
    return wrong, strays


async def _exchanges(backend: Misframing, ask: Ask, patience: float) -> list[tuple[str, str]]:
    wrong = []
    for asked in map(str, range(EACH)):
        try:
            got, body = await ask(f"/?id={asked}")
            if got != asked or body not in (asked, ""):
                wrong.append((asked, f"{got}: {body}"))
        except (aiohttp.ClientError, OSError):
            pass
        await backend.until_quiet(asked, patience)
    return wrong
