"""Many exchanges with backends that misframe at random: whose answers came back to whom."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import aiohttp

from fakes.misframing_backend import Misframing, misframing

AT_ONCE: Final = 20
EACH: Final = 10
"""Exchanges of one connector, with a backend of its own: from the first stray on it distrusts that, and what
keeps it from that one is what is tried."""


async def exchanges_that_went_wrong(
    count: int, connector: Callable[[], aiohttp.BaseConnector], *, patience: float = 10.0
) -> tuple[list[tuple[str, str]], int]:
    """What was asked for, and what came instead; and how many strays the backends sent."""
    wrong: list[tuple[str, str]] = []
    strays = 0

    async def run(seed: int) -> None:
        nonlocal strays
        for start in range(0, count // AT_ONCE, EACH):
            async with misframing(seed * count + start) as backend:
                wrong.extend(await _exchanges(backend, connector(), patience))
            strays += backend.strays

    await asyncio.gather(*(run(seed) for seed in range(AT_ONCE)))
    return wrong, strays


async def _exchanges(
    backend: Misframing, connector: aiohttp.BaseConnector, patience: float
) -> list[tuple[str, str]]:
    wrong = []
    timeout = aiohttp.ClientTimeout(total=patience)
    async with aiohttp.ClientSession(connector=connector, timeout=timeout) as session:
        for asked in map(str, range(EACH)):
            try:
                async with session.get(f"{backend.url}/?id={asked}") as response:
                    got = response.headers.get("X-Answers", "")
                    body = (await response.read()).decode("latin-1")
                if got != asked or body not in (asked, ""):
                    wrong.append((asked, f"{got}: {body}"))
            except (aiohttp.ClientError, TimeoutError):
                pass
            await backend.until_quiet(asked, patience)
    return wrong
