"""TLS within TLS, for https servers behind an https proxy: ``ssl.SSLSocket`` needs a descriptor."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

PIECE: Final = 64 * 1024
"""Bytes read from the outer connection at a time."""


class NestedTLS:
    """Has the methods of a socket that a ``Wire`` calls; owns the outer one."""

    def __init__(self, outer: ssl.SSLSocket, context: ssl.SSLContext, name: str) -> None:
        """Shakes hands. Raises OSError, of which ssl.SSLError is one."""
        self._outer = outer
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=name)
        self._run(self._tls.do_handshake)
        self.settimeout, self.close = outer.settimeout, outer.close

    def sendall(self, data: bytes) -> None:
        # All of it: a memory buffer is never full.
        self._run(lambda: self._tls.write(data))

    def recv(self, size: int) -> bytes:
        """Receive at most ``size`` bytes; none at the end, with or without a TLS goodbye."""
        try:
            return self._run(lambda: self._tls.read(size))
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
            return b""

    def abort(self) -> None:
        """End what another thread does with it."""
        socket.socket.shutdown(self._outer, socket.SHUT_RDWR)

    def _run(self, step: Callable[[], T]) -> T:
        """Repeat the step until it has the bytes that it needs, and send what it produces."""
        while True:
            try:
                done = step()
            except ssl.SSLWantReadError:
                self._outer.sendall(self._outgoing.read())
                piece = self._outer.recv(PIECE)
                if piece:
                    self._incoming.write(piece)
                else:
                    self._incoming.write_eof()
            else:
                self._outer.sendall(self._outgoing.read())
                return done
