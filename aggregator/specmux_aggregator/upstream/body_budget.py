"""A budget for the bytes of large answers in memory, over all backends.

A large body is accepted when there is room, and counts as long as its ``Share`` is referenced: what waits for
a worker counts like what is being read. Beyond its first body, one backend may use a quarter of the room, so
a slow sender costs others time but no document.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from threading import get_ident
from typing import Final

SMALL: Final = 1024 * 1024
"""Bytes up to which an answer is not counted: nearly every document, compressed."""


BODIES: Final = 3
"""The budget, as a multiple of the largest permitted document."""


class Share:
    """Room in use; released with the last reference to it."""

    __slots__ = ("_give_back",)

    def __init__(self, give_back: Callable[[], object]) -> None:
        self._give_back = give_back

    def __del__(self) -> None:
        # The last reference may go away in any thread, and after the loop's end.
        with contextlib.suppress(RuntimeError):
            self._give_back()


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    owner: str
    size: int
    turn: asyncio.Future[None]


class BodyBudget:
    """Lives on one event loop."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._held: Counter[str] = Counter()
        self._waiting: list[_Waiting] = []

    @property
    def held(self) -> int:
        """Bytes in use."""
        return self._held.total()

    async def take(self, owner: str, size: int) -> Share:
        """Room for a body of ``size`` bytes from this backend; waits in turn."""
        size = min(size, self._max_bytes)
        if self._waiting or not self._fits(owner, size):
            waiting = _Waiting(owner, size, asyncio.get_running_loop().create_future())
            self._waiting.append(waiting)
            self._admit()
            try:
                await waiting.turn
            except asyncio.CancelledError:
                self._leave(waiting)
                raise
        else:
            self._held[owner] += size
        return Share(partial(self._release, owner, size, asyncio.get_running_loop(), get_ident()))

    def _release(self, owner: str, size: int, loop: asyncio.AbstractEventLoop, thread: int) -> None:
        if get_ident() == thread:  # nearly always: no need to wake the loop
            loop.call_soon(self._give_back, owner, size)
        else:
            loop.call_soon_threadsafe(self._give_back, owner, size)

    def _fits(self, owner: str, size: int) -> bool:
        own = self._held[owner]
        return self.held + size <= self._max_bytes and (not own or own + size <= self._max_bytes // 4)

    def _admit(self) -> None:
        """Admit what fits, in order of arrival; a backend that waits for its own share blocks no other."""
        for waiting in list(self._waiting):
            if waiting.turn.done():  # cancelled, and about to leave
                continue
            if self._fits(waiting.owner, waiting.size):
                self._waiting.remove(waiting)
                self._held[waiting.owner] += waiting.size
                waiting.turn.set_result(None)
            elif not self._held[waiting.owner]:
                return  # the first in line waits for room that smaller bodies behind it must not take

    def _leave(self, waiting: _Waiting) -> None:
        if waiting in self._waiting:
            self._waiting.remove(waiting)
            self._admit()
        elif not waiting.turn.cancelled():
            self._give_back(waiting.owner, waiting.size)

    def _give_back(self, owner: str, size: int) -> None:
        self._held[owner] -= size
        if not self._held[owner]:
            del self._held[owner]
        self._admit()
