"""Large answers being sent: bodies that clients have not read to the end, bounded together.

Fetched and cached bodies are bounded elsewhere; a body that is neither lives only as long as a client reads
it. Invariant: the counted bodies take at most the budget, or there is only one. A body counts once however
many clients read it. Beyond the budget, bodies whose readers are all slow are dropped; if that is
insufficient, the new answer is refused.
"""

from __future__ import annotations

from typing import Final, Protocol

from specmux_aggregator.http.prepared_answer import refusal

SMALL: Final = 1024 * 1024
"""The largest body that does not count: nearly every document, compressed, is smaller."""

UNREAD_MAX: Final = 192 * 1024 * 1024

SLOW: Final = 256 * 1024
"""Bytes per second, on average, below which a reader may be cut."""

BUFFERED: Final = 4 * 1024 * 1024
"""Bytes that the kernel buffers even for a client that reads nothing."""

GRACE: Final = 5.0
"""Seconds during which no reader counts as slow."""

TOO_MUCH: Final = refusal(
    429,
    "TooManyRequests",
    "clients have not read as many large answers as may be unread, please try again later",
    fields=[("Retry-After", "1")],
)


class Recipient(Protocol):
    """A connection that receives a body."""

    @property
    def sent(self) -> int:
        """Bytes of the body handed over."""

    def give_way(self) -> None:
        """End the connection at once."""


class UnreadBodies:
    """The unread bodies of one listener. Lives on one event loop."""

    __slots__ = ("_bodies", "_max_bytes", "bytes")

    def __init__(self, max_bytes: int = UNREAD_MAX) -> None:
        self._max_bytes = max_bytes
        # The body is kept with its readers, so its id stays unique.
        self._bodies: dict[int, tuple[bytes, dict[Recipient, float]]] = {}
        self.bytes = 0

    def admit(self, body: bytes, reader: Recipient, now: float) -> bool:
        """Whether ``reader`` may receive ``body``, which counts until ``leave``. ``now``: monotonic
        seconds."""
        known = self._bodies.get(id(body))
        if known is None:
            if self._bodies and not self._make_room(len(body), now):
                return False
            known = self._bodies[id(body)] = (body, {})
            self.bytes += len(body)
        known[1][reader] = now
        return True

    def leave(self, body: bytes, reader: Recipient) -> None:
        """Note that ``reader`` has received ``body``, or is gone."""
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
        """Bodies whose readers are all slow, with the speed of the fastest reader."""
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
