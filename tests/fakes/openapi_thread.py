"""``openapi_server`` in a thread of its own, for tests of code that blocks."""

from __future__ import annotations

import asyncio
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from deadline import DEADLINE
from fakes.openapi_server import Server

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator


class ThreadedServer:
    """Start and stop from any thread. ``answer`` and ``requests`` are the server's."""

    def __init__(self, answer: Any, *, tls: ssl.SSLContext | None = None) -> None:
        self.server = Server(answer, tls=tls)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.start()

    @property
    def url(self) -> str:
        return self.server.url

    def start(self) -> None:
        asyncio.run_coroutine_threadsafe(self.server.start(), self._loop).result(DEADLINE)

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self.server.stop(), self._loop).result(DEADLINE)

    def close(self) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(DEADLINE)
        self._loop.close()


@contextmanager
def serving_in_thread(answer: Any, *, tls: ssl.SSLContext | None = None) -> Iterator[ThreadedServer]:
    server = ThreadedServer(answer, tls=tls)
    try:
        yield server
    finally:
        server.close()
