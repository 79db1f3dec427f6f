"""Answers about discovery that are too long to be made while others wait: made in steps, and compressed in a
thread, which needs no GIL."""

from __future__ import annotations

import asyncio

from specmux_aggregator.discovery.index import Asked, DiscoveryIndex
from specmux_aggregator.tasks import in_turns


async def render(index: DiscoveryIndex, asked: Asked) -> None:
    """Have the bytes of ``asked`` at hand."""
    path, form, coding = asked
    subject = index.find(path)
    if subject is None:
        return
    rendering = await in_turns(index.steps(path, subject, form))
    if index.coded(path, form, coding, rendering) is None:
        await asyncio.to_thread(index.encode, path, form, coding, rendering)
