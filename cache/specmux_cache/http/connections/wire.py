"""A blocking connection with a deadline, which notices input between answers.

Invariant: no byte received before a request was sent is read as its answer (RFC 9112 9.2).
"""

from __future__ import annotations

import select
import socket
import time
from typing import Final

PIECE: Final = 64 * 1024
"""Bytes read from the socket at a time."""


class Wire:
    """Sends and receives; each call raises TimeoutError after the deadline."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._received = bytearray()
        self._deadline = 0.0
        self.has_ended = False
        """Whether the end was read, which happens only when more was expected."""

    def begin(self, deadline: float) -> None:
        """Start a request; ``deadline``: for the complete answer, on the monotonic clock."""
        self._deadline = deadline

    def sendall(self, data: bytes) -> None:
        self._connection.settimeout(self._left())
        self._connection.sendall(data)

    def line(self, limit: int) -> bytes:
        """Read up to a line feed, or the end. Raises OverflowError beyond ``limit`` bytes."""
        searched = 0
        while (end := self._received.find(b"\n", searched)) < 0:
            searched = len(self._received)
            if searched > limit:
                raise OverflowError
            if not self._more():
                end = searched - 1
                break
        if end >= limit:
            raise OverflowError
        return self._taken(end + 1)

    def read(self, size: int) -> bytes:
        """Read at most ``size`` bytes; none at the end."""
        if not self._received:
            self._more()
        return self._taken(size)

    def is_quiet(self) -> bool:
        """Whether nothing has arrived between two answers, not even the end."""
        if self.has_ended or self._received:
            return False
        pending = getattr(self._connection, "pending", None)  # of TLS: decrypted but unread bytes
        if pending is not None and pending():
            return False
        poll = select.poll()
        poll.register(self._connection, select.POLLIN)
        return not poll.poll(0)

    def close(self) -> None:
        self._connection.close()

    def _more(self) -> bool:
        self._connection.settimeout(self._left())
        piece = self._connection.recv(PIECE)
        self._received += piece
        self.has_ended = not piece
        return bool(piece)

    def _taken(self, size: int) -> bytes:
        taken = bytes(self._received[:size])
        del self._received[:size]
        return taken

    def _left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left
