"""Memory that connections hold for requests: incomplete heads, queued requests, and the one being answered,
counted by its actual cost.

Invariant: a head has at most ``HEAD_MAX`` bytes, and all connections together hold at most ``HELD_MAX`` plus
one read each. aiohttp bounds only the number of lines, fields and messages: 128 fields of 8 KB in 32
requests, each held twice, are 64 MiB for one connection that reads none of its answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from aiohttp.http import RawRequestMessage
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.streams import EMPTY_PAYLOAD

HEAD_MAX: Final = 64 * 1024
"""Bytes of a request line and all header fields."""

PAUSE_AT: Final = 256 * 1024
"""Cost from which a connection is no longer read until its answers are sent."""

HELD_MAX: Final = 24 * 1024 * 1024
"""Cost of all connections together from which the largest are cut."""

MESSAGE_COST: Final = 2_500
FIELD_COST: Final = 400
"""Bytes of memory per field beside its text, which aiohttp holds twice: raw and decoded."""

BODY_HELD: Final = 80 * 1024
"""Bytes of an unread body that can be buffered."""

END_OF_HEAD: Final = b"\r\n\r\n"


class HeadTooLarge(HttpProcessingError):
    """A head of more than HEAD_MAX bytes."""

    code = 431


class HeldByAll:
    """The cost of all connections of one listener."""

    __slots__ = ("cost",)

    def __init__(self) -> None:
        self.cost = 0

    @property
    def is_too_much(self) -> bool:
        return self.cost > HELD_MAX


class HeldBytes:
    """The cost of one connection, in bytes of memory."""

    __slots__ = ("_all", "_costs", "_head_cost", "_kept", "_payload", "cost", "head")

    def __init__(self, held_by_all: HeldByAll) -> None:
        self._all = held_by_all
        self._costs: list[int] = []
        """The cost of each queued message, after that of the previous one, which aiohttp still holds."""
        self._payload: Any = EMPTY_PAYLOAD
        self._head_cost = 0
        self._kept = 0
        self.head = 0
        """Bytes of an incomplete head."""
        self.cost = 0

    def take(self, data: bytes, messages: Sequence[tuple[RawRequestMessage, Any]], waiting: int) -> None:
        """Count ``data`` after parsing, with the message whose head it completed, if any. ``waiting``:
        messages queued before it. Raises HeadTooLarge."""
        try:
            self._let_go(waiting)
            self._take(data, messages)
        finally:
            self._sum_up()

    def _take(self, data: bytes, messages: Sequence[tuple[RawRequestMessage, Any]]) -> None:
        if messages:
            size = self.head + len(data)
            if size > HEAD_MAX and head_size(messages[0][0]) > HEAD_MAX:
                raise HeadTooLarge
            for message, _ in messages:
                self._costs.append(MESSAGE_COST + 2 * size + FIELD_COST * len(message.raw_headers))
            self._payload = messages[-1][1]
            self.head = self._head_cost = 0
        elif self._is_in_body():
            if self._costs:
                self._costs[-1] = min(self._costs[-1] + len(data), MESSAGE_COST + BODY_HELD)
        else:
            self._begin(data)

    def set_waiting(self, waiting: int) -> None:
        """Set the number of messages that still wait."""
        if len(self._costs) > waiting + 1:
            self._let_go(waiting)
            self._sum_up()

    def _let_go(self, waiting: int) -> None:
        del self._costs[: max(len(self._costs) - waiting - 1, 0)]

    def keep(self, size: int) -> None:
        """Count bytes that wait to be parsed."""
        self._kept = size
        self._sum_up()

    def clear(self) -> None:
        self._costs.clear()
        self._payload = EMPTY_PAYLOAD
        self.head = self._head_cost = self._kept = 0
        self._sum_up()

    def _begin(self, data: bytes) -> None:
        self.head += len(data)
        self._head_cost += 2 * len(data) + FIELD_COST * data.count(b"\n")
        if self.head > HEAD_MAX:
            raise HeadTooLarge

    def _is_in_body(self) -> bool:
        return self._payload is not EMPTY_PAYLOAD and not self._payload.is_eof()

    def _sum_up(self) -> None:
        cost = self._head_cost + self._kept + sum(self._costs)
        self._all.cost += cost - self.cost
        self.cost = cost


def head_size(message: RawRequestMessage) -> int:
    """The least number of bytes of a message's head as received."""
    fields = sum(len(name) + len(value) + 4 for name, value in message.raw_headers)
    # aiohttp turns an empty target into no path.
    line = len(message.method or "") + len(message.path or "") + len("  HTTP/1.1\r\n")
    return line + fields + len("\r\n")
