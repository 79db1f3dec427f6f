"""aiohttp's protocol of a client, with a read timeout that costs next to nothing while something comes.

aiohttp makes a timer for each request and each piece that is read, and cancels it. Here one stays: when it
goes off it looks at how long nothing came, and waits for the rest.
"""

from __future__ import annotations

import asyncio
import math
from typing import Final

from aiohttp.client_proto import ResponseHandler

EARLY: Final = 0.001
"""Seconds that a timer may go off before its time: asyncio's clock ticks, and says how seldom."""


class TimedResponses(ResponseHandler):
    """Ends a read as aiohttp's does, at the same time and with the same error."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(loop)
        self._due = math.inf
        """When it has waited long enough, the loop's time; infinite: it waits for nothing."""
        self._goes_off = math.inf
        """The same of the timer, which may be earlier."""

    def _reschedule_timeout(self) -> None:
        if not self._read_timeout:
            self._drop_timeout()
            return
        self._due = self._loop.time() + self._read_timeout
        if self._due < self._goes_off:
            self._start_timer()

    def _drop_timeout(self) -> None:
        self._due = math.inf
        if self.transport is None or self._connection_lost_called:
            self._goes_off = math.inf
            super()._drop_timeout()

    def _on_read_timeout(self) -> None:
        self._read_timeout_handle, self._goes_off = None, math.inf
        if self._due <= self._loop.time() + EARLY:
            super()._on_read_timeout()
        elif self._due < math.inf:
            self._start_timer()

    def _start_timer(self) -> None:
        if self._read_timeout_handle is not None:
            self._read_timeout_handle.cancel()
        self._goes_off = self._due
        self._read_timeout_handle = self._loop.call_at(self._due, self._on_read_timeout)
