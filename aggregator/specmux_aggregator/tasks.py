"""Tasks that several wait for, and tasks that nobody waits for.

One piece of work is in flight per key, however many wait for it. A bug that ends a task nobody waits for is
logged at once, not when the task is collected.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Generator, Hashable
from typing import Any, Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

TURN: Final = 0.002
"""Seconds of work on the event loop, after which it is somebody else's turn."""


class SingleFlight(Generic[K, V]):
    """Callers with an equal key share one run. A caller that is cancelled leaves the others' run alone."""

    def __init__(self) -> None:
        self._flights: dict[K, asyncio.Task[V]] = {}

    async def run(self, key: K, work: Callable[[], Awaitable[V]]) -> V:
        flight = self._flights.get(key)
        if flight is None:
            flight = asyncio.ensure_future(_started(work))
            self._flights[key] = flight
            flight.add_done_callback(lambda done: self._landed(key, done))
        return await asyncio.shield(flight)

    async def close(self) -> None:
        """Cancel what still runs, and wait until it is gone."""
        flights = list(self._flights.values())
        for flight in flights:
            flight.cancel()
        await asyncio.gather(*flights, return_exceptions=True)

    def _landed(self, key: K, flight: asyncio.Task[V]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]
        if not flight.cancelled():
            flight.exception()  # marks it as seen when every caller was cancelled


async def _started(work: Callable[[], Awaitable[V]]) -> V:
    return await work()


async def in_turns(steps: Generator[None, None, V]) -> V:
    """What comes of ``steps``, a few milliseconds at a time, between which everybody else has a turn."""
    while True:
        until = time.perf_counter() + TURN
        while time.perf_counter() < until:
            try:
                next(steps)
            except StopIteration as end:
                result: V = end.value
                return result
        await asyncio.sleep(0)


def log_failure(task: asyncio.Task[Any], logger: logging.Logger, message: str) -> None:
    """Have ``message`` logged with the error that ``task`` ends with; a good end and a cancelled one are
    silent."""

    def tell(ended: asyncio.Task[Any]) -> None:
        if not ended.cancelled() and (error := ended.exception()) is not None:
            logger.error(message, exc_info=error)

    task.add_done_callback(tell)
