"""Bytes of large answers that are held at one time, those of all backends together.

A large body is taken when there is room for it, and counts for as long as anybody has its ``Share``: what
waits for a worker process is held as well as what is being read. Beyond its first, one backend has a quarter
of the room, so that one that sends slowly costs others time and no document.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

SMALL: Final = 1024 * 1024
"""Bytes of an answer that are taken at once and not counted: nearly every document, compressed."""


BODIES: Final = 3
"""What is held at one time, in times the largest document there may be."""


class Share:
    """Room that is taken. It is given back when nobody refers to it any more."""

    __slots__ = ("_give_back",)

    def __init__(self, give_back: Callable[[], object]) -> None:
        self._give_back = give_back

    def __del__(self) -> None:
        # The last reference may go in any thread, and after the loop's end.
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
        """Bytes."""
        return self._held.total()

    async def take(self, owner: str, size: int) -> Share:
        """Room for a body of ``size`` bytes from this backend, waited for in turn."""
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
        loop = asyncio.get_running_loop()
        return Share(partial(loop.call_soon_threadsafe, self._give_back, owner, size))

    def _fits(self, owner: str, size: int) -> bool:
        own = self._held[owner]
        return self.held + size <= self._max_bytes and (not own or own + size <= self._max_bytes // 4)

    def _admit(self) -> None:
        """Whoever fits, in the order in which they came; who waits for its own holds up nobody."""
        for waiting in list(self._waiting):
            if waiting.turn.done():  # cancelled, and about to leave
                continue
            if self._fits(waiting.owner, waiting.size):
                self._waiting.remove(waiting)
                self._held[waiting.owner] += waiting.size
                waiting.turn.set_result(None)
            elif not self._held[waiting.owner]:
                return  # the first in line waits for room, which smaller ones behind it must not take away

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
