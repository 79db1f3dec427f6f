"""Whose turn it is: few at once, some of those for one address at most, and addresses in rotation.

Whoever waits is let in before a second one of an address that was served meanwhile, so an address that asks
for more than its share makes itself wait. Lives in one event loop.
"""

from __future__ import annotations

import asyncio
from collections import Counter, OrderedDict, deque


class TooManyWait(Exception):
    """As many of this address wait as may."""


class Turns:
    """Each turn that was taken is given back."""

    def __init__(self, at_once: int, *, of_one: int, waiting_of_one: int) -> None:
        """``at_once``: turns that are taken at a time; ``of_one``: those of them by one address;
        ``waiting_of_one``: how many of one address may wait."""
        self._free = at_once
        self._of_one = of_one
        self._waiting_of_one = waiting_of_one
        self._taken: Counter[bytes] = Counter()
        self._waiting: OrderedDict[bytes, deque[asyncio.Future[None]]] = OrderedDict()
        """By address; who is first is next."""

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
