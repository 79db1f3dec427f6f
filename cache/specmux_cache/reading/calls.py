"""How blocking calls run: in threads beside an event loop, or in place.

The rules of the cache are written once, as coroutines. With ``InPlace`` they never wait for an event loop, so
a program without one runs them with ``finished``.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Coroutine, Hashable
from typing import Any, Final, Generic, Protocol, TypeVar

from specmux_cache.reading.events import EventLog
from specmux_converters.deferred_dataclasses import dataclass

T = TypeVar("T")


class Calls(Protocol):
    """Runs blocking functions."""

    async def run(self, work: Callable[..., T], *arguments: Any) -> T: ...
    async def pause(self, seconds: float) -> None: ...


class InThreads:
    """For an event loop, which continues meanwhile."""

    async def run(self, work: Callable[..., T], *arguments: Any) -> T:
        from asyncio import to_thread

        return await to_thread(work, *arguments)

    async def pause(self, seconds: float) -> None:
        from asyncio import sleep

        await sleep(seconds)


class InPlace:
    """For a thread that may block."""

    async def run(self, work: Callable[..., T], *arguments: Any) -> T:
        return work(*arguments)

    async def pause(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251  # there is no event loop to hold up


IN_THREADS: Final = InThreads()
IN_PLACE: Final = InPlace()


class Flights(Protocol[T]):
    """Runs that callers with equal keys may share."""

    @property
    def go_on(self) -> bool:
        """Whether a run continues when nobody waits for it."""
        ...

    async def run(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T: ...
    def start(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> object: ...
    async def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class ClientRuntime(Generic[T]):
    """What a client runs with: calls, events, and its clock."""

    calls: Calls
    flights: Flights[T]
    events: EventLog
    warn: Callable[[str], None]
    clock: Callable[[], float]


class OwnFlights:
    """Each caller has its own run, and waits for it."""

    go_on: Final = False

    async def run(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T:
        return await work()

    def start(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> object:
        raise RuntimeError("nothing runs behind a caller's back here")

    async def close(self) -> None:
        """Nothing is running."""


def finished(call: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that waits only for calls in place."""
    try:
        call.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    call.close()
    raise RuntimeError("it waits for an event loop, and there is none")
