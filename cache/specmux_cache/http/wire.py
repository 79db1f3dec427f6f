"""A blocking connection with a deadline, plain or encrypted, which notices input between answers.

Invariants: no byte received before a request was sent is read as its answer (RFC 9112 9.2); every call ends
by the deadline, and soon after ``abort``.
"""

# Theory of operation
#
# A Wire belongs to one thread at a time. Another may only ``abort`` it: that shuts the socket down, which
# wakes whoever waits for it, and closes nothing. A descriptor that is closed under a waiting thread may be
# somebody else's file by the time it is read.
#
# Addresses of a name are tried as RFC 8305 says: the next one 0.25 s after the last, all at the same time,
# and the first that answers wins. With one at a time, a network without IPv6 would cost a connect timeout
# per request. The same interval bounds how long an abort goes unnoticed while nothing is connected.
#
# Between two answers the socket is read once without waiting. Nothing: it is good for another request. The
# end: the server closed an idle connection, as servers do. Bytes: it sent more than its answer, and
# whatever comes next could be taken for the answer to another request; the connection is closed, and its
# server is not trusted with kept ones. Reading, and not polling, tells these apart with TLS too: session
# tickets are bytes to poll, and no data.

from __future__ import annotations

import errno
import os
import select
import socket
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:  # TLS takes longer to import than a warm command takes
    import ssl

PIECE: Final = 64 * 1024
"""Bytes read from the socket at a time."""
STAGGER: Final = 0.25
"""Seconds after which the next address is tried as well (RFC 8305, section 5)."""

Address: TypeAlias = tuple[socket.AddressFamily, Any]
"""A family and what its sockets connect to."""


class Wire:
    """Connects, sends and receives; each call raises TimeoutError after the deadline."""

    def __init__(self, deadline: float) -> None:
        """``deadline``: on the monotonic clock, as for ``begin``."""
        self._connection: Any = None
        self._received = b""
        self._at = 0
        """The index in ``_received`` of what was not read yet."""
        self._deadline = deadline
        self._is_aborted = False
        self.used_at = 0.0
        """When it was last found quiet, on the monotonic clock."""
        self.has_ended = False
        """Whether the end was read."""

    def begin(self, deadline: float) -> None:
        """Start a request; ``deadline``: for the complete answer, on the monotonic clock."""
        self._deadline = deadline

    def connect(self, addresses: list[Address], deadline: float) -> Address:
        """The first address that accepts. Raises TimeoutError after this deadline, OSError if all refuse."""
        untried, trying = list(addresses), dict[int, tuple[socket.socket, Address]]()
        failure = OSError()
        poll = select.poll()
        try:
            while untried or trying:
                if untried:
                    address = untried.pop(0)
                    attempt = socket.socket(address[0], socket.SOCK_STREAM)
                    trying[attempt.fileno()] = attempt, address
                    attempt.setblocking(False)
                    poll.register(attempt, select.POLLOUT)
                    if (code := attempt.connect_ex(address[1])) not in (0, errno.EINPROGRESS):
                        failure = OSError(code, os.strerror(code))
                        poll.unregister(attempt)
                        trying.pop(attempt.fileno())[0].close()
                        continue
                left = deadline - time.monotonic()
                if left <= 0 or self._is_aborted:
                    raise TimeoutError
                for descriptor, _ in poll.poll(min(left, STAGGER) * 1000):
                    attempt, address = trying.pop(descriptor)
                    poll.unregister(attempt)
                    if not (code := attempt.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)):
                        attempt.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                        self._connection, self._received, self._at = attempt, b"", 0
                        return address
                    failure = OSError(code, os.strerror(code))
                    attempt.close()
            raise failure
        finally:
            for attempt, _ in trying.values():
                attempt.close()

    def encrypt(self, context: ssl.SSLContext, name: str) -> None:
        """Begin TLS, within TLS too. Raises OSError, of which ssl.SSLError is one, for a failed handshake."""
        import ssl

        self._connection.settimeout(self._seconds_left())
        if isinstance(self._connection, ssl.SSLSocket):
            from specmux_cache.http.nested_tls import NestedTLS

            self._connection = NestedTLS(self._connection, context, name)
        else:
            self._connection = context.wrap_socket(self._connection, server_hostname=name)

    def sendall(self, data: bytes) -> None:
        self._connection.settimeout(self._seconds_left())
        self._connection.sendall(data)

    def line(self, limit: int) -> bytes:
        """Read up to a line feed, or the end. Raises OverflowError beyond ``limit`` bytes."""
        searched = self._at
        while (end := self._received.find(b"\n", searched)) < 0:
            searched = len(self._received) - self._at
            if searched > limit:
                raise OverflowError
            if not self._receive_more():
                end = len(self._received) - 1
                break
        if end - self._at >= limit:
            raise OverflowError
        return self._take_bytes(end + 1 - self._at)

    def read(self, size: int) -> bytes:
        """Read at most ``size`` bytes; none at the end."""
        if self._at < len(self._received):
            return self._take_bytes(size)
        return self._receive(min(size, PIECE))

    def is_quiet(self) -> bool:
        """Whether nothing has arrived between two answers, not even the end."""
        if self.has_ended or self.has_stray:
            return False
        self._connection.settimeout(0)
        try:
            piece = self._connection.recv(1)
        except BlockingIOError:
            self.used_at = time.monotonic()
            return not self._is_aborted
        except OSError as error:  # TLS has an error of its own for nothing to read
            self.has_ended = type(error).__name__ != "SSLWantReadError"
            self.used_at = time.monotonic()
            return not (self.has_ended or self._is_aborted)
        self._received, self._at, self.has_ended = piece, 0, not piece
        return False

    @property
    def is_connected(self) -> bool:
        return self._connection is not None

    @property
    def has_stray(self) -> bool:
        """Whether bytes arrived that belong to no answer."""
        return self._at < len(self._received)

    def abort(self) -> None:
        """End what another thread does with it; that thread closes it."""
        self._is_aborted = True
        if isinstance(connection := self._connection, socket.socket):
            with suppress(OSError):
                socket.socket.shutdown(connection, socket.SHUT_RDWR)  # not TLS's, which changes state
        elif connection is not None:
            connection.abort()

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _receive_more(self) -> bool:
        piece = self._receive(PIECE)
        self._received, self._at = self._received[self._at :] + piece, 0
        return bool(piece)

    def _receive(self, size: int) -> bytes:
        self._connection.settimeout(self._seconds_left())
        piece: bytes = self._connection.recv(size)
        self.has_ended = not piece
        return piece

    def _take_bytes(self, size: int) -> bytes:
        taken = self._received[self._at : self._at + size]
        self._at += len(taken)
        return taken

    def _seconds_left(self) -> float:
        left = self._deadline - time.monotonic()
        if left <= 0 or self._is_aborted:
            raise TimeoutError
        return left
