"""Which event loop tests run on, and one of its own in a thread, for tests whose subject brings its own too.

``TEST_EVENT_LOOP=uvloop`` runs them, and the services that they start, on uvloop.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any, Final, ParamSpec, Protocol, TypeVar

from specmux_aggregator.event_loops import loop_factory

EVENT_LOOP: Final = os.environ.get("TEST_EVENT_LOOP", "asyncio")

P = ParamSpec("P")


def install() -> None:
    """From here on every loop of this process is the chosen one. asyncio's own classes stay what they are."""
    if EVENT_LOOP == "asyncio":
        return
    make = loop_factory(EVENT_LOOP)
    asyncio.new_event_loop = make
    asyncio.events.new_event_loop = make  # where asyncio.run looks it up


class Startable(Protocol):
    async def start(self) -> None: ...

    async def stop(self) -> None: ...


Server = TypeVar("Server", bound=Startable)


@contextlib.contextmanager
def serving(server: Server) -> Iterator[Server]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(server.start(), loop).result(10)
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()


def on_a_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """A test that is a coroutine function, run on a loop of its own."""

    @functools.wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return run
