"""One fetch in flight per key: among the tasks of an event loop, and among processes that share a
directory."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import hashlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Hashable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Generic, TypeVar

V = TypeVar("V")

STRIPES: Final = 64
"""Lock files, so that their number is bounded; two keys that share one wait for each other at worst."""
POLL: Final = 0.02
"""Seconds between two tries for a lock file."""


class SingleFlight(Generic[V]):
    """Callers with an equal key share one run, and its error. A caller that is cancelled leaves it to the
    others.

    A run that nobody waits for any more goes on: what it fetches is stored.
    """

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


class FlightLocks:
    """Advisory locks among processes. They spare work and guard nothing: without one, the fetch is made."""

    def __init__(self, directory: Path | None, *, timeout: float) -> None:
        """``directory`` None is no locks; ``timeout`` in seconds."""
        self._directory = directory
        self._timeout = timeout

    @asynccontextmanager
    async def held(self, key: Hashable) -> AsyncIterator[bool]:
        """Wait for the key's lock. False: another holds it still, or there are no locks here."""
        if self._directory is None:
            yield False
            return
        stripe = int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:2], "big") % STRIPES
        path = self._directory / f"{stripe:02}"
        descriptor: int | None = None
        try:
            with contextlib.suppress(OSError):
                descriptor = await asyncio.to_thread(_opened, path)
            yield descriptor is not None and await self._locked(descriptor)
        finally:
            if descriptor is not None:
                os.close(descriptor)

    async def _locked(self, descriptor: int) -> bool:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._timeout
        while not await asyncio.to_thread(_try_lock, descriptor):
            if loop.time() >= deadline:
                return False
            await asyncio.sleep(POLL)
        return True


async def _awaited(work: Callable[[], Awaitable[V]]) -> V:
    return await work()


def _opened(path: Path) -> int:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # A file system without locks; to fetch twice is better than not at all.
        return True
    return True
