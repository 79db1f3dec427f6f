"""Make long answers about discovery in steps, and compress them in a thread, which needs no GIL."""

from __future__ import annotations

import asyncio

from specmux_aggregator.discovery.index import Asked, DiscoveryIndex
from specmux_aggregator.tasks import in_turns


async def render(index: DiscoveryIndex, asked: Asked) -> None:
    """Make the bytes of ``asked``."""
    path, form, coding = asked
    subject = index.find(path)
    if subject is None:
        return
    rendering = await in_turns(index.steps(path, subject, form))
    if index.coded(path, form, coding, rendering) is None:
        await asyncio.to_thread(index.encode, path, form, coding, rendering)
