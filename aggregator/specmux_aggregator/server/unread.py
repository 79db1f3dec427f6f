"""Large answers on their way: bodies that clients have not read to their end, bounded together.

What is fetched and what is kept are bounded where that is done; what is neither any more lives as long as
somebody reads it. Invariant: the bodies that count are at most the budget, or one alone. A body counts once,
however many clients read it. Beyond the budget those give way whose readers are all slow; if that is not
enough, the new answer is refused.
"""

from __future__ import annotations

from typing import Final, Protocol

from specmux_aggregator.http.prepared import refusal

SMALL: Final = 1024 * 1024
"""Bytes of a body that does not count: nearly every document, compressed."""

UNREAD_MAX: Final = 192 * 1024 * 1024

SLOW: Final = 256 * 1024
"""Bytes per second, on average, below which a reader has to give way."""

BUFFERED: Final = 4 * 1024 * 1024
"""Bytes that the kernel takes for a client that reads nothing, and which are no sign of one that does."""

GRACE: Final = 5.0
"""Seconds in which nobody is called slow."""

TOO_MUCH: Final = refusal(
    429,
    "TooManyRequests",
    "clients have not read as many large answers as may be unread, please try again later",
    fields=[("Retry-After", "1")],
)


class Recipient(Protocol):
    """A connection that takes a body."""

    @property
    def sent(self) -> int:
        """Bytes of the body that are handed over."""

    def give_way(self) -> None:
        """End the connection at once."""


class UnreadBodies:
    """Of one listener. Lives on one event loop."""

    __slots__ = ("_bodies", "_max_bytes", "bytes")

    def __init__(self, max_bytes: int = UNREAD_MAX) -> None:
        self._max_bytes = max_bytes
        # A body is kept beside its readers: while it lives, its id is nobody else's.
        self._bodies: dict[int, tuple[bytes, dict[Recipient, float]]] = {}
        self.bytes = 0

    def admit(self, body: bytes, reader: Recipient, now: float) -> bool:
        """Whether ``reader`` may have ``body``, which counts until it leaves. ``now``: monotonic seconds."""
        known = self._bodies.get(id(body))
        if known is None:
            if self._bodies and not self._make_room(len(body), now):
                return False
            known = self._bodies[id(body)] = (body, {})
            self.bytes += len(body)
        known[1][reader] = now
        return True

    def leave(self, body: bytes, reader: Recipient) -> None:
        """``reader`` has it, or is gone."""
        known = self._bodies.get(id(body))
        if known is not None and known[1].pop(reader, None) is not None and not known[1]:
            self._forget(body)

    def _make_room(self, size: int, now: float) -> bool:
        missing = self.bytes + size - self._max_bytes
        if missing <= 0:
            return True
        slow = sorted(self._slow_bodies(now), key=lambda found: found[0])
        if sum(len(body) for _, body, _ in slow) < missing:
            return False
        for _, body, readers in slow:
            self._forget(body)
            for reader in readers:
                reader.give_way()
            missing -= len(body)
            if missing <= 0:
                break
        return True

    def _slow_bodies(self, now: float) -> list[tuple[float, bytes, list[Recipient]]]:
        """Bodies all of whose readers are slow, with the speed of the fastest."""
        found = []
        for body, readers in self._bodies.values():
            if now - max(readers.values()) > GRACE:
                fastest = max((reader.sent - BUFFERED) / (now - since) for reader, since in readers.items())
                if fastest < SLOW:
                    found.append((fastest, body, list(readers)))
        return found

    def _forget(self, body: bytes) -> None:
        del self._bodies[id(body)]
        self.bytes -= len(body)
