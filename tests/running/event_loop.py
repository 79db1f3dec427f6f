"""An event loop in a thread, for tests whose subject brings its own."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from typing import Protocol, TypeVar

from deadline import DEADLINE


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
        asyncio.run_coroutine_threadsafe(server.start(), loop).result(DEADLINE)
        yield server
    finally:
        asyncio.run_coroutine_threadsafe(server.stop(), loop).result(DEADLINE)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(DEADLINE)
        loop.close()
