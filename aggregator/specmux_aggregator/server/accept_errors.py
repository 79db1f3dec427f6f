"""Failures to accept a connection for lack of descriptors or memory: log one line a minute, and close idle
connections to make room.

asyncio reports every failed attempt, a thousand a second, each with a traceback.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Any, Final

from specmux_aggregator.server.stats import RequestStats

logger = logging.getLogger(__name__)

TOLD: Final = "socket.accept() out of system resource"
"""The message of asyncio for this failure (selector_events.py)."""

QUIET: Final = 60.0
"""Seconds between two lines in the log."""

PAUSE: Final = 0.5
"""Seconds between two attempts to make room."""

ROOM: Final = 32
"""Idle connections to close at a time. A health probe needs one of these places."""


class AcceptErrors:
    """The exception handler of one event loop; passes on everything else to the previous handler."""

    def __init__(self, stats: RequestStats, make_room: Callable[[], bool]) -> None:
        """``make_room`` closes an idle connection; False if there is none."""
        self._stats = stats
        self._make_room = make_room
        self._before: Callable[[asyncio.AbstractEventLoop, dict[str, Any]], object] | None = None
        self._told_at = self._room_at = float("-inf")

    def install(self, loop: asyncio.AbstractEventLoop) -> None:
        self._before = loop.get_exception_handler()
        loop.set_exception_handler(self)

    def remove(self, loop: asyncio.AbstractEventLoop) -> None:
        if loop.get_exception_handler() is self:
            loop.set_exception_handler(self._before)

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        if context.get("message") == TOLD:
            self._failed(context.get("exception"))
        elif self._before is not None:
            self._before(loop, context)
        else:
            loop.default_exception_handler(context)

    def _failed(self, error: object) -> None:
        self._stats.accept_errors += 1
        now = time.monotonic()
        if now - self._told_at >= QUIET:
            self._told_at = now
            reason = error.strerror if isinstance(error, OSError) else error
            logger.error(
                "no more connections can be accepted: %s; raise the limit of open files, or lower"
                " listen.max_connections",
                reason,
            )
        if now - self._room_at >= PAUSE:
            self._room_at = now
            for _ in range(ROOM):
                if not self._make_room():
                    break
