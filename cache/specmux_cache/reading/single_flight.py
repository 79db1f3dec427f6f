"""One run per key at a time among the tasks of an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SingleFlight(Generic[K, V]):
    """Callers with equal keys share a run and its error. Cancelling one caller does not affect the others.

    A run continues when nobody waits for it any more: its result is stored.
    """

    go_on: Final = True

    def __init__(self) -> None:
        self._flights: dict[K, _Flight[V]] = {}

    def start(self, key: K, work: Callable[[], Awaitable[V]]) -> _Flight[V]:
        """Start a run without waiting for it, unless there is one."""
        flight = self._flights.get(key)
        if flight is None:
            flight = self._flights[key] = _Flight()
            flight.task = asyncio.get_running_loop().create_task(self._fly(key, flight, work))
        return flight

    async def run(self, key: K, work: Callable[[], Awaitable[V]]) -> V:
        flight = self.start(key, work)
        landing: asyncio.Future[V] = asyncio.get_running_loop().create_future()
        flight.landings.add(landing)
        try:
            return await landing
        finally:
            flight.landings.discard(landing)

    async def close(self) -> None:
        """Cancel running work and wait until it has ended."""
        flights = dict(self._flights)
        tasks = [flight.task for flight in flights.values() if flight.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for key, flight in flights.items():  # a task that has not started cannot notify its callers
            for landing in self._land(key, flight):
                landing.cancel()

    async def _fly(self, key: K, flight: _Flight[V], work: Callable[[], Awaitable[V]]) -> None:
        """Notifies callers in the turn in which the run ends; a task and a shield take two more."""
        try:
            result = await work()
        except asyncio.CancelledError:
            for landing in self._land(key, flight):
                landing.cancel()
            raise
        except Exception as error:  # noqa: BLE001  # it is its callers', who may all be gone
            for landing in self._land(key, flight):
                landing.set_exception(error)
        else:
            for landing in self._land(key, flight):
                landing.set_result(result)

    def _land(self, key: K, flight: _Flight[V]) -> list[asyncio.Future[V]]:
        """The callers that still wait for a finished run."""
        if self._flights.get(key) is flight:
            del self._flights[key]
        return [landing for landing in flight.landings if not landing.done()]


class _Flight(Generic[V]):
    """A run, with a future per caller, so that each can be cancelled separately."""

    __slots__ = ("landings", "task")

    def __init__(self) -> None:
        self.task: asyncio.Task[None] | None = None
        self.landings: set[asyncio.Future[V]] = set()
