"""The bytes of a page, built once for concurrent requests."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Final

from specmux_cache.reading.single_flight import SingleFlight

LARGE: Final = 64 * 1024
"""Bytes from which a body is kept: clients that read slowly hold it while it is sent."""

KEPT: Final = 1.0
"""Seconds for which a large body is reused."""


class SharedBody:
    """A body built once and shared. Lives on one event loop."""

    def __init__(self, make: Callable[[], Awaitable[bytes]]) -> None:
        self._make = make
        self._body = b""
        self._made_at = float("-inf")
        self._making: SingleFlight[None, bytes] = SingleFlight()

    async def get(self) -> bytes:
        if len(self._body) >= LARGE and time.monotonic() - self._made_at < KEPT:
            return self._body
        return await self._making.run(None, self._made)

    async def _made(self) -> bytes:
        started = time.monotonic()
        self._body = await self._make()
        # The time when building began.
        self._made_at = started
        return self._body
