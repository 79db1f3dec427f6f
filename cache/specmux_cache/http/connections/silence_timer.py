"""Timer of a connection on which nothing comes, which costs next to nothing while something does.

A timer made and cancelled for each request and each piece is most of what a read costs. Here one stays: when
it goes off it looks at how long nothing came, and waits for the rest.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Final

EARLY: Final = 0.001
"""Seconds that a timer may go off before its time: a loop's clock ticks."""


class SilenceTimer:
    """Calls ``on_silence`` once ``seconds`` have passed since the last ``start``, unless it was stopped."""

    __slots__ = ("_due", "_goes_off", "_handle", "_on_silence", "_time", "seconds")

    def __init__(self, time: asyncio.AbstractEventLoop, on_silence: Callable[[], None]) -> None:
        """``time``: the loop on which it runs."""
        self._time = time
        self._on_silence = on_silence
        self._handle: asyncio.TimerHandle | None = None
        self._due = math.inf
        """When it has waited long enough, the loop's time; infinite: it waits for nothing."""
        self._goes_off = math.inf
        """The same of the handle, which may be earlier."""
        self.seconds: float | None = None
        """None: it waits for ever."""

    def start(self) -> None:
        """Wait from now on, whatever it waited before."""
        if not self.seconds:
            self.stop()
            return
        self._due = self._time.time() + self.seconds
        if self._due < self._goes_off:
            self._set()

    def stop(self) -> None:
        """Wait for nothing."""
        self._due = math.inf

    def close(self) -> None:
        """Wait for nothing, and hold nothing."""
        self._due = self._goes_off = math.inf
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _set(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._goes_off = self._due
        self._handle = self._time.call_at(self._due, self._went_off)

    def _went_off(self) -> None:
        self._handle, self._goes_off = None, math.inf
        if self._due <= self._time.time() + EARLY:
            self._due = math.inf
            self._on_silence()
        elif self._due < math.inf:
            self._set()
