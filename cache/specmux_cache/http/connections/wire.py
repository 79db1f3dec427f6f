"""A connection as ``http.client`` uses one, with a deadline, that knows whether anything came between
answers.

Invariant: no byte that came before a request was sent is read as its answer (RFC 9112 9.2).
"""

from __future__ import annotations

import io
import select
import socket
import ssl
import time


class Wire:
    """What ``http.client`` wants of a socket: sendall, makefile, close."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._bytes = _Bytes(connection)
        self._buffer = io.BufferedReader(self._bytes)

    def begin(self, deadline: float) -> None:
        """For one request; ``deadline`` of its whole answer, on the monotonic clock."""
        self._bytes.deadline = deadline

    def sendall(self, data: bytes) -> None:
        """Raises TimeoutError."""
        self._connection.settimeout(_left(self._bytes.deadline))
        self._connection.sendall(data)

    def makefile(self, mode: str) -> io.BufferedIOBase:
        """The same buffer for every answer, so that what it has of the next one is not lost."""
        return _Answer(self._buffer)

    @property
    def has_ended(self) -> bool:
        """Whether the end was read, which is read only where more was wanted."""
        return self._bytes.has_ended

    def is_quiet(self) -> bool:
        """Between two answers: whether nothing came, nor the end."""
        if self.has_ended or self._has_buffered():
            return False
        if isinstance(self._connection, ssl.SSLSocket) and self._connection.pending():
            return False
        poll = select.poll()
        poll.register(self._connection, select.POLLIN)
        return not poll.poll(0)

    def close(self) -> None:
        self._connection.close()

    def _has_buffered(self) -> bool:
        self._bytes.is_at_rest = True
        try:
            return bool(self._buffer.peek(1))
        finally:
            self._bytes.is_at_rest = False


class _Bytes(io.RawIOBase):
    """What comes, until the deadline."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.deadline = 0.0
        self.has_ended = False
        self.is_at_rest = False
        """Nothing is read: only what is there already counts."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int | None:  # type: ignore[override]
        """Raises TimeoutError."""
        if self.is_at_rest:
            return None
        self._connection.settimeout(_left(self.deadline))
        count = self._connection.recv_into(buffer)
        self.has_ended = self.has_ended or count == 0
        return count


class _Answer(io.BufferedIOBase):
    """The buffer for the time of one answer: closing it leaves the connection open."""

    def __init__(self, buffer: io.BufferedReader[_Bytes]) -> None:
        self._buffer = buffer

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        return self._buffer.read(size)

    def read1(self, size: int = -1) -> bytes:
        return self._buffer.read1(size)

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        return self._buffer.readinto(buffer)

    def readline(self, size: int | None = -1) -> bytes:
        return self._buffer.readline(size)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
