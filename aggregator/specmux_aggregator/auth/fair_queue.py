"""A fair queue: a limit on concurrent turns, a limit per address, and addresses in rotation.

A waiting address goes before a second turn of one just served, so an address that exceeds its share delays
only itself. Lives on one event loop.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque


class TooManyWait(Exception):
    """The limit on waiting requests of this address is reached."""


class Turns:
    """Each turn that is taken must be given back."""

    def __init__(self, at_once: int, *, of_one: int, waiting_of_one: int) -> None:
        """``at_once``: concurrent turns; ``of_one``: of one address; ``waiting_of_one``: requests of one
        address that may wait."""
        self._free = at_once
        self._of_one = of_one
        self._waiting_of_one = waiting_of_one
        self._taken: Counter[bytes] = Counter()
        self._waiting: OrderedDict[bytes, deque[asyncio.Future[None]]] = OrderedDict()
        """By address; the first is next."""

    async def take(self, address: bytes) -> None:
        """Wait for a turn. Raises TooManyWait."""
        if self._may(address):
            self._let_in(address)
            return
        queue = self._waiting.setdefault(address, deque())
        if len(queue) >= self._waiting_of_one:
            raise TooManyWait
        turn = asyncio.get_running_loop().create_future()
        queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give_back(address)
            else:
                self._leave(address, turn)
            raise

    def give_back(self, address: bytes) -> None:
        self._free += 1
        self._taken[address] -= 1
        if not self._taken[address]:
            del self._taken[address]
        while (following := self._next()) is not None:
            queue = self._waiting.pop(following)
            turn = queue.popleft()
            if queue:
                self._waiting[following] = queue  # behind all others
            if not turn.cancelled():
                self._let_in(following)
                turn.set_result(None)

    def _next(self) -> bytes | None:
        return next((address for address in self._waiting if self._may(address)), None)

    def _may(self, address: bytes) -> bool:
        return self._free > 0 and self._taken[address] < self._of_one

    def _let_in(self, address: bytes) -> None:
        self._free -= 1
        self._taken[address] += 1

    def _leave(self, address: bytes, turn: asyncio.Future[None]) -> None:
        queue = self._waiting.get(address)
        if queue is not None and turn in queue:
            queue.remove(turn)
            if not queue:
                del self._waiting[address]
