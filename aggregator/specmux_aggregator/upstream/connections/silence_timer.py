"""A timer for silence on a connection, with almost no cost while data arrives.

Creating and cancelling a timer per request and piece would be most of the cost of reading. Here one timer
remains: when it fires, it checks how long the silence has lasted, and waits for the rest.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Final

EARLY: Final = 0.001
"""Seconds by which a timer may fire early, due to the resolution of the loop's clock."""


class SilenceTimer:
    """Calls ``on_silence`` when ``seconds`` have passed since the last ``start``, unless stopped."""

    __slots__ = ("_due", "_goes_off", "_handle", "_on_silence", "_time", "seconds")

    def __init__(self, time: asyncio.AbstractEventLoop, on_silence: Callable[[], None]) -> None:
        """``time``: the loop on which it runs."""
        self._time = time
        self._on_silence = on_silence
        self._handle: asyncio.TimerHandle | None = None
        self._due = math.inf
        """When the silence is too long, on the loop's clock; infinite if stopped."""
        self._goes_off = math.inf
        """When the handle fires, which may be earlier."""
        self.seconds: float | None = None
        """None: unlimited."""

    def start(self) -> None:
        """Start, or start anew."""
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
        """Stop and release the handle."""
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
