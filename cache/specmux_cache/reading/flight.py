"""One fetch in flight per key among the tasks of an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar

V = TypeVar("V")


class SingleFlight(Generic[V]):
    """Callers with an equal key share one run, and its error. A caller that is cancelled leaves it to the
    others.

    A run that nobody waits for any more goes on: what it fetches is stored.
    """

    go_on: Final = True

    def __init__(self) -> None:
        self._flights: dict[Hashable, asyncio.Task[V]] = {}

    async def run(self, key: Hashable, work: Callable[[], Awaitable[V]]) -> V:
        return await asyncio.shield(self.start(key, work))

    def start(self, key: Hashable, work: Callable[[], Awaitable[V]]) -> asyncio.Task[V]:
        """The run for this key, begun now unless there is one. Whoever starts it need not wait for it."""
        flight = self._flights.get(key)
        if flight is None:
            flight = asyncio.ensure_future(_awaited(work))
            self._flights[key] = flight
            flight.add_done_callback(lambda done: self._landed(key, done))
        return flight

    async def close(self) -> None:
        """Cancel what still runs, and wait until it is gone."""
        flights = list(self._flights.values())
        for flight in flights:
            flight.cancel()
        await asyncio.gather(*flights, return_exceptions=True)

    def _landed(self, key: Hashable, flight: asyncio.Task[V]) -> None:
        del self._flights[key]
        if not flight.cancelled():
            flight.exception()  # seen: nobody may be waiting for it


async def _awaited(work: Callable[[], Awaitable[V]]) -> V:
    return await work()
