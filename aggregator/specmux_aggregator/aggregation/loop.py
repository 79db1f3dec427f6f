"""A loop that checks one thing forever: check, wait, check again.

``poke`` wakes it. Pokes in quick succession cause one check, and two checks start at least MIN_GAP apart.
Checks of several loops that are due at about the same time start together.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Final

MIN_GAP: Final = 0.1
"""Least seconds between the starts of two checks, unless the first returned a shorter pause."""

TICK: Final = 0.1
"""Seconds: checks due in the same tick start together. A single check finds the processor's caches cold and
takes two or three times as long as one of ten."""

LONG: Final = 50 * TICK
"""Pause in seconds from which a tick earlier makes no difference."""

PLACES: Final = 64
"""First checks under way at a time."""

HELD: Final = 0.25
"""Most seconds for which a first check keeps its place."""


class Pace:
    """Bounds the number of first checks under way. A thousand at once would all be answered late, and some
    time out; a check that hangs gives up its place soon, so it delays nobody."""

    def __init__(self, *, places: int = PLACES, held: float = HELD) -> None:
        self._places = asyncio.Semaphore(places)
        self._held = held

    @property
    def is_crowded(self) -> bool:
        """Whether a new check would have to wait."""
        return self._places.locked()

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """A place, given in the order of arrival."""
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
    """``look`` returns the seconds until the next check; None: until poked. ``reason`` returns when an
    earlier check is needed; it receives the event that ``poke`` sets."""

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
        """Check at once: there is news."""
        self._poked.set()

    async def run(self) -> None:
        """Run until cancelled."""
        pace, self._pace = self._pace, None
        if pace is not None:
            async with pace.place():
                started, seconds = await self._time_look()
            await self._pause(started, seconds)
        while True:
            started, seconds = await self._time_look()
            await self._pause(started, seconds)

    async def _time_look(self) -> tuple[float, float | None]:
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
    """When a check that should wait ``seconds`` is due, on the clock of ``now``: never later."""
    due = now + seconds
    return due // TICK * TICK if seconds >= LONG else due
