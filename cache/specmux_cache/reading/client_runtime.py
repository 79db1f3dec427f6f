"""The blocking calls of a client, and the runs that its callers share.

The rules of the cache are written once, as coroutines; ``sync`` runs them without an event loop.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Hashable, Sequence
from typing import Any, Final, Protocol, TypeVar

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


IN_THREADS: Final = InThreads()


class Flights(Protocol[T]):
    """Runs that callers with equal keys may share."""

    @property
    def go_on(self) -> bool:
        """Whether a run continues when nobody waits for it."""
        ...

    async def run(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> T: ...
    def start(self, key: Hashable, work: Callable[[], Awaitable[T]]) -> object: ...
    async def close(self) -> None: ...
