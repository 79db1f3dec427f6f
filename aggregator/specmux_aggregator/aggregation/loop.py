"""The loop that looks at one thing for ever: look, wait, look again.

Whoever has news pokes it. Pokes that come close together are one look, and two looks begin MIN_GAP apart,
whatever asks for them. Looks of many loops that are due at about the same time begin together.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

MIN_GAP: Final = 0.1
"""Seconds between the starts of two looks, unless the first of them asked for less."""

TICK: Final = 0.1
"""Seconds: looks that are due in the same tick begin with it. One alone finds nothing of itself in the caches
of a processor that slept, and takes two or three times as long as one of ten."""

LONG: Final = 50 * TICK
"""Seconds of a pause from which on a tick less is nothing."""

PLACES: Final = 64
"""First looks that are under way at a time."""

HELD: Final = 0.25
"""Seconds for which one that is under way keeps its place, at most."""


class Pace:
    """Bounds how many first looks are under way. A thousand at once would all be answered late, and some of
    them not in time; one that hangs gives its place up soon, so that it delays nobody."""

    def __init__(self, *, places: int = PLACES, held: float = HELD) -> None:
        self._places = asyncio.Semaphore(places)
        self._held = held

    @property
    def is_crowded(self) -> bool:
        """Whoever comes now has to wait."""
        return self._places.locked()

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Those who wait get theirs in the order in which they came."""
        await self._places.acquire()
        places = [self._places]

        def give_up() -> None:
            if places:
                places.pop().release()

        timer = asyncio.get_running_loop().call_later(self._held, give_up)
        try:
            yield
        finally:
            timer.cancel()
            give_up()


class Loop:
    """``look`` returns the seconds until the next look; None: until it is poked. ``reason`` returns when
    there is one to look before that; it is given what ``poke`` sets."""

    def __init__(
        self,
        look: Callable[[], Awaitable[float | None]],
        *,
        pace: Pace | None = None,
        reason: Callable[[asyncio.Event], Awaitable[object]] = asyncio.Event.wait,
    ) -> None:
        self._look = look
        self._pace = pace
        self._reason = reason
        self._poked = asyncio.Event()

    def poke(self) -> None:
        """Look at once: there is news."""
        self._poked.set()

    async def run(self) -> None:
        """Until it is cancelled."""
        pace, self._pace = self._pace, None
        if pace is not None:
            async with pace.place():
                started, seconds = await self._looked()
            await self._pause(started, seconds)
        while True:
            started, seconds = await self._looked()
            await self._pause(started, seconds)

    async def _looked(self) -> tuple[float, float | None]:
        started = time.monotonic()
        self._poked.clear()
        return started, await self._look()

    async def _pause(self, started: float, seconds: float | None) -> None:
        if seconds is None:
            await self._reason(self._poked)
        else:
            loop = asyncio.get_running_loop()
            timer = loop.call_at(due_at(loop.time(), seconds), self._poked.set)
            try:
                await self._reason(self._poked)
            finally:
                timer.cancel()
        gap = MIN_GAP if seconds is None else min(MIN_GAP, seconds)
        await asyncio.sleep(started + gap - time.monotonic())


def due_at(now: float, seconds: float) -> float:
    """When a look is due that is to wait so long, in the time of ``now``: never later."""
    due = now + seconds
    return due // TICK * TICK if seconds >= LONG else due
