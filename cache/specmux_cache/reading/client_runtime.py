"""The runtime of a client: how blocking calls run, how runs are shared, and the log of its events.

The rules of the cache are written once, as coroutines. With ``InPlace`` they never wait for an event loop, so
a program without one runs them with ``run_in_place``.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Generic, Literal, Protocol, TypeAlias, TypeVar, get_args

from specmux_converters.lazy.dataclasses import dataclass

T = TypeVar("T")


class Calls(Protocol):
    """Runs blocking functions."""

    async def run(self, work: Callable[..., T], *arguments: Any) -> T: ...
    async def pause(self, seconds: float) -> None: ...
    async def each(
        self, work: Callable[[str], Coroutine[Any, Any, None]], names: Sequence[str], *, concurrency: int
    ) -> None: ...


class InThreads:
    """Blocking calls in threads: an event loop continues meanwhile."""

    async def run(self, work: Callable[..., T], *arguments: Any) -> T:
        from asyncio import to_thread

        return await to_thread(work, *arguments)

    async def pause(self, seconds: float) -> None:
        from asyncio import sleep

        await sleep(seconds)

    async def each(
        self, work: Callable[[str], Coroutine[Any, Any, None]], names: Sequence[str], *, concurrency: int
    ) -> None:
        from asyncio import Semaphore, TaskGroup

        turns = Semaphore(concurrency)

        async def take_turn(name: str) -> None:
            async with turns:
                await work(name)

        async with TaskGroup() as group:
            for name in names:
                group.create_task(take_turn(name))


class InPlace:
    """Blocking calls in the calling thread."""

    async def run(self, work: Callable[..., T], *arguments: Any) -> T:
        return work(*arguments)

    async def pause(self, seconds: float) -> None:
        time.sleep(seconds)  # noqa: ASYNC251  # there is no event loop to hold up

    async def each(
        self, work: Callable[[str], Coroutine[Any, Any, None]], names: Sequence[str], *, concurrency: int
    ) -> None:
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(concurrency) as threads:
            for run in threads.map(lambda name: run_in_place(work(name)), names):
                assert run is None


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


EventKind: TypeAlias = Literal[
    "hit",  # answered from the cache without a request
    "stale",  # answered from the cache although a request was due
    "revalidated",  # 304
    "fetched",  # a body came from the server
    "delta",  # a body came as its difference from a stored one
    "delta_failed",  # such a body was wrong: it was asked for again as a whole
    "redirected",  # a stale hash
    "refused",  # 406 or 415
    "not_stored",  # fetched but not stored: no-store, or no room
    "failed",  # the server returned nothing usable
]


@dataclass(frozen=True, slots=True)
class Event:
    """An event. ``name``: a group-version, or a path with its leading slash."""

    kind: EventKind
    name: str
    size: int = 0
    """Bytes of the body."""
    seconds: float = 0.0
    """From the request to the complete answer."""


class EventLog:
    """Counts events and passes them on. The hook is called on the event loop: it must not block or raise."""

    def __init__(self, hook: Callable[[Event], None] | None) -> None:
        self._hook = hook
        self._counts: Counter[EventKind] = Counter(dict.fromkeys(get_args(EventKind), 0))
        self.bytes_fetched = 0

    def record(self, kind: EventKind, name: str, *, size: int = 0, seconds: float = 0.0) -> None:
        self._counts[kind] += 1
        if kind == "fetched":
            self.bytes_fetched += size
        if self._hook is not None:
            self._hook(Event(kind, name, size, seconds))

    def counts(self) -> Mapping[EventKind, int]:
        return MappingProxyType(dict(self._counts))


@dataclass(frozen=True, slots=True)
class ClientRuntime(Generic[T]):
    """The runtime of a client: calls, flights, events, and its clock."""

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


def run_in_place(call: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that waits only for calls in place."""
    try:
        call.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    call.close()
    raise RuntimeError("it waits for an event loop, and there is none")
